import { en } from "./messages.en";
import { zh } from "./messages.zh";

export const messages = { en, "zh-CN": zh };
