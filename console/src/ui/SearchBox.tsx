import { Search } from "lucide-react";
import { useId, useState, type FormEvent } from "react";
import { useText } from "@/i18n/text";
import { messages } from "./messages";

export interface SearchError {
  text: string;
  /** column is where in the text it is wrong, from 1. */
  column?: number | undefined;
}

interface Props {
  value: string;
  onSearch: (value: string) => void;
  placeholder?: string;
  error?: SearchError | undefined;
}

/** columnOf finds the column in what the server says of an expression. */
export function columnOf(detail: string): number | undefined {
  const found = / is broken at (?:line \d+, )?column (\d+)|: column (\d+) of the condition/.exec(detail);
  return found ? Number(found[1] ?? found[2]) : undefined;
}

/** SearchBox takes an expression. An error stands below it, at its column; what was typed stays. The key / leads here. */
export function SearchBox({ value, onSearch, placeholder, error }: Props) {
  const t = useText(messages);
  const id = useId();
  const [typed, setTyped] = useState(value);
  const [before, setBefore] = useState(value);
  if (value !== before) {
    setBefore(value); // the back button has brought another one
    setTyped(value);
  }
  const submit = (e: FormEvent) => {
    e.preventDefault();
    onSearch(typed.trim());
  };
  return (
    <form role="search" onSubmit={submit} className="min-w-0 grow sm:min-w-80">
      <div className="relative">
        <Search aria-hidden className="pointer-events-none absolute top-2 left-2 size-4 text-muted" />
        <input
          data-search
          type="search"
          className="h-8 w-full rounded border border-line bg-surface pr-2 pl-8 font-mono"
          aria-label={t("search")}
          aria-invalid={error !== undefined}
          aria-describedby={error ? id : undefined}
          placeholder={placeholder}
          spellCheck={false}
          value={typed}
          onChange={(e) => setTyped(e.target.value)}
        />
      </div>
      {error && (
        <p id={id} role="alert" className="overflow-x-auto pl-8 font-mono whitespace-pre text-bad">
          {error.column !== undefined && `${" ".repeat(error.column - 1)}^\n`}
          {error.text}
        </p>
      )}
    </form>
  );
}
