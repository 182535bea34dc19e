import type { ComponentProps } from "react";

const look = "rounded border border-line bg-ground px-2 py-1 text-text";

/** Input is a field with its name above it. */
export function Input({ label, className = "", ...rest }: ComponentProps<"input"> & { label: string }) {
  return (
    <label className={`flex min-w-0 flex-col ${className}`}>
      {label}
      <input className={`h-8 w-full font-mono ${look}`} autoComplete="off" spellCheck={false} {...rest} />
    </label>
  );
}

interface SelectProps {
  label: string;
  value: string;
  choices: readonly { value: string; label: string }[];
  onChange: (value: string) => void;
  /** bare hides the name, where the place says it. */
  bare?: boolean;
}

/** Select is one of a few choices. */
export function Select({ label, value, choices, onChange, bare = false }: SelectProps) {
  const select = (
    <select aria-label={bare ? label : undefined} className={`h-8 max-w-full ${look}`} value={value} onChange={(e) => onChange(e.target.value)}>
      {choices.map((c) => (
        <option key={c.value} value={c.value}>
          {c.label}
        </option>
      ))}
    </select>
  );
  if (bare) return select;
  return (
    <label className="flex min-w-0 flex-col">
      {label}
      {select}
    </label>
  );
}

/** Check is a box that is ticked or not. */
export function Check({ label, ...rest }: ComponentProps<"input"> & { label: string }) {
  return (
    <label className="flex min-h-6 items-center gap-2">
      <input type="checkbox" className="size-4 accent-accent" {...rest} />
      {label}
    </label>
  );
}
