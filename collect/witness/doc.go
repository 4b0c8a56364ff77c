// Package witness reads an inference engine's own metrics page for the few numbers
// that stand beside what clients of it saw: tokens, requests, its queue and its time
// to first token. It knows vLLM, SGLang, llama.cpp's server and Hugging Face's TGI.
//
// It only ever asks for the page (GET /metrics), one request in flight; how often is
// the caller's affair, and more often than every 250 ms is too often. What a page does
// not have is absent, never zero. Reading llama.cpp's page empties its averages
// (prompt_tokens_seconds, predicted_tokens_seconds), which cover the time since the
// reading before; its totals stay.
package witness
