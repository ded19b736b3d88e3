/** Asking a question from anywhere on the page. */

import { useContext } from "preact/hooks";
import { useData } from "../parts/useData";
import { useAddress } from "../state";
import { ConversationContext } from "./conversation";

/** Ask a question; `names` are further names for the searches path and neighbourhood. */
export type Ask = (question: string, method?: string, names?: string[]) => void;

/** Return a function that asks a question, and shows the conversation. */
export function useAsk(): Ask {
  const conversation = useContext(ConversationContext);
  const { address, go } = useAddress();
  const { data } = useData();
  return (question, method = address.method, names) => {
    // The address keeps the search that the reader chose: one that was suggested is for once.
    go({ panel: "ask", question, conversation: conversation.id });
    const { filters, version } = address;
    void conversation.ask(data, { question, method, ...(names ? { names } : {}), filters, version });
  };
}
