package serve

import "fmt"

// form writes the answer to one request in the format of its endpoint. Members are in the order of vLLM's
// pydantic models; chunks of a stream omit members that were not set (model_dump_json(exclude_unset=True)).
type form struct {
	chat        bool
	stream      bool
	usage       bool // add a last chunk with the usage
	details     bool // add cached tokens to the usage: --enable-prompt-tokens-details
	head        []byte
	fingerprint []byte // of the server, as JSON
}

// newForm returns a form with the common beginning of all pieces of an answer.
func newForm(chat bool, p *params, id string, created int64, model, fingerprint string, details bool) form {
	object := "text_completion"
	if chat {
		object = "chat.completion"
		if p.stream {
			object += ".chunk"
		}
	}
	return form{
		chat: chat, stream: p.stream, usage: p.usage, details: details,
		head: fmt.Appendf(nil, `{"id":%s,"object":"%s","created":%d,"model":%s,"choices":[`, quote(id), object, created, quote(model)),

		fingerprint: quote(fingerprint),
	}
}

// chunk appends one event with new text. In a chat, the event that opens the message precedes the first one.
func (f *form) chunk(b []byte, i int, c *choice, text string) []byte {
	if f.chat && !c.begun {
		b = fmt.Appendf(b, `data: %s{"index":%d,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`, f.head, i)
		b = append(b, `,"prompt_token_ids":null,"prompt_text":null}`+"\n\n"...)
	}
	says, rest := `"text":%s`, `,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]`
	if f.chat {
		says, rest = `"delta":{"content":%s}`, `,"token_ids":null}]`
		if c.finish != 0 {
			rest = `,"stop_reason":null` + rest
		}
	}
	b = fmt.Appendf(b, `data: %s{"index":%d,`+says+`,"logprobs":null,"finish_reason":%s%s`, f.head, i, quote(text), reason(c.finish), rest)
	if c.finish != 0 && !f.usage {
		b = fmt.Appendf(b, `,"system_fingerprint":%s`, f.fingerprint)
	}
	return append(b, "}\n\n"...)
}

func counts(prompt, output int) string {
	return fmt.Sprintf(`"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d`, prompt, prompt+output, output)
}

// total sums the usage over a request's choices. Cached tokens are those of the
// first, as vLLM reports them.
func total(choices []choice) (usage string, cached int) {
	prompt, output := 0, 0
	for i := range choices {
		prompt += choices[i].prompt
		output += choices[i].tokens
	}
	return counts(prompt, output), choices[0].cached
}

// last appends the end of a stream: the usage if it was requested, and [DONE].
func (f *form) last(b []byte, choices []choice) []byte {
	if f.usage {
		usage, cached := total(choices)
		if f.details {
			usage += fmt.Sprintf(`,"prompt_tokens_details":{"cached_tokens":%d}`, cached)
		}
		b = fmt.Appendf(b, `data: %s],"usage":{%s},"system_fingerprint":%s}`+"\n\n", f.head, usage, f.fingerprint)
	}
	return append(b, "data: [DONE]\n\n"...)
}

// whole appends a complete answer without streaming.
func (f *form) whole(b []byte, choices []choice) []byte {
	b = append(b, f.head...)
	for i := range choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = f.appendChoice(b, i, &choices[i])
	}
	usage, cached := total(choices)
	details := "null"
	if f.details {
		details = fmt.Sprintf(`{"cached_tokens":%d,"created_cache_tokens":null,"multimodal_tokens":null}`, cached)
	}
	b = fmt.Appendf(b, `],"service_tier":null,"system_fingerprint":%s`, f.fingerprint)
	b = fmt.Appendf(b, `,"usage":{%s,"prompt_tokens_details":%s,"completion_tokens_details":null}`, usage, details)
	if f.chat {
		b = append(b, `,"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null`...)
	}
	return append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`...)
}

func (f *form) appendChoice(b []byte, i int, c *choice) []byte {
	says, rest := `"text":%s`, `,"prompt_logprobs":null,"prompt_token_ids":null`
	if f.chat {
		says, rest = `"message":{"role":"assistant","content":%s,"refusal":null,"annotations":null,"audio":null,`+
			`"function_call":null,"reasoning":null}`, ""
	}
	b = fmt.Appendf(b, `{"index":%d,`+says+`,"logprobs":null,"finish_reason":%s`, i, quote(string(c.text)), reason(c.finish))
	return fmt.Appendf(b, `,"stop_reason":null,"token_ids":null%s,"routed_experts":null}`, rest)
}
