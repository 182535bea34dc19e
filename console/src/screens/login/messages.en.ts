export const en = {
  title: "Log in",
  name: "Name",
  password: "Password",
  wrong: "That is not right.",
  onceHint: "Nobody has a password yet? The terminal of the server shows a link that logs in once; or make a user:",
  sso: "Log in with your organisation, or with a link",
  over: "Your session is over. Log in again; this page stays as it is.",
} as const;
