/** Requests of the stand-in for `random-acts-of-pizza`. */
import { type Draw, neutral, type Row } from "./standin-tables.ts";

/** Fields that the test set lacks, because they were not known at the time of the request. */
export const pizzaLater = [
  "number_of_downvotes_of_request_at_retrieval",
  "number_of_upvotes_of_request_at_retrieval",
  "post_was_edited",
  "request_number_of_comments_at_retrieval",
  "request_text",
  "requester_account_age_in_days_at_retrieval",
  "requester_days_since_first_post_on_raop_at_retrieval",
  "requester_number_of_comments_at_retrieval",
  "requester_number_of_comments_in_raop_at_retrieval",
  "requester_number_of_posts_at_retrieval",
  "requester_number_of_posts_on_raop_at_retrieval",
  "requester_received_pizza",
  "requester_upvotes_minus_downvotes_at_retrieval",
  "requester_upvotes_plus_downvotes_at_retrieval",
  "requester_user_flair",
];

export function pizzaRequest(draw: Draw, i: number): Row {
  const received = i % 4 === 0;
  const text = `${draw.words(draw.int(15, 60))}. ${received ? "I lost my job" : "Just hungry"}, ${draw.words(6)}.`;
  const counts = (name: string, at: string) => ({ [`requester_number_of_${name}_${at}`]: draw.int(0, 500) });
  const at = "at_request";
  const later = "at_retrieval";
  const request: Record<string, unknown> = {
    giver_username_if_known: received && draw.chance(0.6) ? `giver_${draw.hex(4)}` : "N/A",
    [`number_of_downvotes_of_request_${later}`]: draw.int(0, 9),
    [`number_of_upvotes_of_request_${later}`]: draw.int(0, 30),
    post_was_edited: draw.chance(0.1),
    request_id: `t3_${draw.hex(5)}`,
    [`request_number_of_comments_${later}`]: draw.int(0, 20),
    request_text: text,
    request_text_edit_aware: text,
    request_title: `[Request] ${draw.words(6)}`,
    [`requester_account_age_in_days_${at}`]: draw.real(0, 2000, 10),
    [`requester_account_age_in_days_${later}`]: draw.real(500, 2500, 10),
    [`requester_days_since_first_post_on_raop_${at}`]: draw.real(0, 100, 10),
    [`requester_days_since_first_post_on_raop_${later}`]: draw.real(100, 900, 10),
    ...{ ...counts("comments", at), ...counts("comments", later) },
    ...{ ...counts("comments_in_raop", at), ...counts("comments_in_raop", later) },
    ...{ ...counts("posts", at), ...counts("posts", later) },
    ...{ ...counts("posts_on_raop", at), ...counts("posts_on_raop", later) },
    ...counts("subreddits", at),
    requester_received_pizza: received,
    [`requester_subreddits_${at}`]: Array.from({ length: draw.int(0, 12) }, () => draw.pick(neutral)),
    [`requester_upvotes_minus_downvotes_${at}`]: draw.int(-10, 3000),
    [`requester_upvotes_minus_downvotes_${later}`]: draw.int(0, 4000),
    [`requester_upvotes_plus_downvotes_${at}`]: draw.int(0, 5000),
    [`requester_upvotes_plus_downvotes_${later}`]: draw.int(0, 6000),
    requester_user_flair: received ? "shroom" : null,
    requester_username: `user_${draw.hex(6)}`,
    unix_timestamp_of_request: 1_300_000_000 + draw.int(0, 80_000_000),
    unix_timestamp_of_request_utc: 1_300_000_000 + draw.int(0, 80_000_000),
  };
  return request as Row; // only JSON has lists and null
}
