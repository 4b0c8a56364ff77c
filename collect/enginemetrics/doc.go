// Package enginemetrics reads the few numbers of an inference engine's own metrics page
// that cross-check what its clients measured: tokens, requests, queue and time to first
// token. It knows vLLM, SGLang, llama.cpp's server and Hugging Face's TGI.
//
// It only requests the page (GET /metrics), one request at a time. The caller sets the
// pace, which should not be faster than every 250 ms. A value that the page does not
// have is absent, never zero. Reading llama.cpp's page resets its averages
// (prompt_tokens_seconds, predicted_tokens_seconds), which cover the time since the
// previous reading; its totals are unaffected.
package enginemetrics
