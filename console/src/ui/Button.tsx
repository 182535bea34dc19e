import type { ComponentProps } from "react";

const looks = {
  plain: "border-line bg-surface text-text hover:bg-raised",
  primary: "border-accent bg-accent text-on-accent hover:opacity-90",
  danger: "border-bad bg-surface text-bad hover:bg-raised",
  bare: "border-transparent bg-transparent text-muted hover:bg-raised hover:text-text",
};

export interface ButtonProps extends ComponentProps<"button"> {
  look?: keyof typeof looks;
}

/** Button is at least 28 px high, so that a finger hits it. */
export function Button({ look = "plain", className = "", type = "button", ...rest }: ButtonProps) {
  return (
    <button
      type={type}
      className={`inline-flex min-h-8 items-center justify-center gap-1.5 rounded border px-2.5 py-0.5 whitespace-nowrap disabled:opacity-50 ${looks[look]} ${className}`}
      {...rest}
    />
  );
}
