import { Link } from "@tanstack/react-router";

/** TopicLink is the name of a topic, which leads to it. */
export function TopicLink({ topic }: { topic: string }) {
  return (
    <Link to="/topics/$topic" params={{ topic }} className="inline-block py-0.5 font-medium break-all text-accent hover:underline">
      {topic}
    </Link>
  );
}
