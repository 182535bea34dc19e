import { Tabs as Radix } from "radix-ui";
import { useEffect, useRef, type ReactNode } from "react";

export interface Tab {
  value: string;
  label: string;
  count?: string | undefined;
  content: ReactNode;
}

/** Tabs are the parts of a screen. Which one is open belongs in the URL. */
export function Tabs({ tabs, value, onChange }: { tabs: Tab[]; value: string; onChange: (value: string) => void }) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    void list.current?.querySelector("[data-state=active]")?.scrollIntoView({ block: "nearest", inline: "nearest" }); // a phone has no room for all
  }, [value]);
  return (
    <Radix.Root value={value} onValueChange={onChange}>
      <Radix.List ref={list} className="flex gap-1 overflow-x-auto border-b border-line">
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            className="-mb-px flex min-h-8 items-center gap-1.5 border-b-2 border-transparent px-3 whitespace-nowrap text-muted hover:text-text data-[state=active]:border-accent data-[state=active]:text-text"
          >
            {tab.label}
            {tab.count !== undefined && <span className="rounded-full bg-raised px-1.5 text-xs tabular-nums">{tab.count}</span>}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content key={tab.value} value={tab.value} className="pt-4">
          {tab.value === value && tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
