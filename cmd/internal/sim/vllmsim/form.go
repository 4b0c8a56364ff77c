package vllmsim

import (
	"fmt"
	"time"
)

// form writes the answer to one request in the format of its endpoint. Members are in the order of vLLM's
// pydantic models; chunks of a stream omit members that were not set (model_dump_json(exclude_unset=True)).
type requestForm struct {
	chat        bool
	stream      bool
	usage       bool // add a last chunk with the usage
	details     bool // add cached tokens to the usage: --enable-prompt-tokens-details
	head        []byte
	fingerprint []byte // of the server, as JSON
}

// form returns a form with the common beginning of all pieces of an answer.
func (f *incarnation) form(b *requestBody, chat bool, id string) requestForm {
	object := "text_completion"
	if chat {
		object = "chat.completion"
		if b.Stream {
			object += ".chunk"
		}
	}
	model := f.served(b.Model)
	return requestForm{
		chat: chat, stream: b.Stream, usage: b.StreamOptions != nil && b.StreamOptions.Usage, details: f.details,
		head: fmt.Appendf(nil, `{"id":%s,"object":"%s","created":%d,"model":%s,"choices":[`, quote(id), object, time.Now().Unix(), quote(model)),

		fingerprint: quote(f.fingerprint),
	}
}

// chunk appends one event with new text. In a chat, the event that opens the message precedes the first one.
func (f *requestForm) chunk(b []byte, c *stream, text string) []byte {
	if f.chat && !c.begun {
		b = fmt.Appendf(b, `data: %s{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`, f.head)
		b = append(b, `,"prompt_token_ids":null,"prompt_text":null}`+"\n\n"...)
	}
	says, rest := `"text":%s`, `,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]`
	if f.chat {
		says, rest = `"delta":{"content":%s}`, `,"token_ids":null}]`
		if c.finish != 0 {
			rest = `,"stop_reason":null` + rest
		}
	}
	b = fmt.Appendf(b, `data: %s{"index":0,`+says+`,"logprobs":null,"finish_reason":%s%s`, f.head, quote(text), reason(c.finish), rest)
	if c.finish != 0 && !f.usage {
		b = fmt.Appendf(b, `,"system_fingerprint":%s`, f.fingerprint)
	}
	return append(b, "}\n\n"...)
}

// counts formats the usage of a request.
func counts(c *stream) string {
	return fmt.Sprintf(`"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d`, c.prompt, c.prompt+c.tokens, c.tokens)
}

// last appends the end of a stream: the usage if it was requested, and [DONE].
func (f *requestForm) last(b []byte, c *stream) []byte {
	if f.usage {
		usage := counts(c)
		if f.details {
			usage += fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, c.cached)
		}
		b = fmt.Appendf(b, `data: %s],"usage":{%s},"system_fingerprint":%s}`+"\n\n", f.head, usage, f.fingerprint)
	}
	return append(b, "data: [DONE]\n\n"...)
}

// whole appends a complete answer without streaming.
func (f *requestForm) whole(b []byte, c *stream) []byte {
	says, rest := `"text":%s`, `,"prompt_logprobs":null,"prompt_token_ids":null`
	if f.chat {
		says, rest = `"message":{"role":"assistant","content":%s,"refusal":null,"annotations":null,"audio":null,`+
			`"function_call":null,"reasoning":null}`, ""
	}
	b = fmt.Appendf(b, `%s{"index":0,`+says+`,"logprobs":null,"finish_reason":%s`, f.head, quote(string(c.text)), reason(c.finish))
	b = fmt.Appendf(b, `,"stop_reason":null,"token_ids":null%s,"routed_experts":null}`, rest)
	details := "null"
	if f.details {
		details = fmt.Sprintf(`{"cached_tokens":%d,"created_cache_tokens":null,"multimodal_tokens":null}`, c.cached)
	}
	b = fmt.Appendf(b, `],"service_tier":null,"system_fingerprint":%s`, f.fingerprint)
	b = fmt.Appendf(b, `,"usage":{%s,"prompt_tokens_details":%s,"completion_tokens_details":null}`, counts(c), details)
	if f.chat {
		b = append(b, `,"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null`...)
	}
	return append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`...)
}
