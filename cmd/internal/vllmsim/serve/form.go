package serve

// form writes one request's answer in its endpoint's shape. Members stand in
// the order in which vLLM's pydantic models write them; a stream's chunks leave
// out what was not set (model_dump_json(exclude_unset=True)).
type form struct {
	chat        bool
	stream      bool
	usage       bool // a last chunk with the usage
	continuous  bool // the usage so far in each chunk
	details     bool // cached tokens in the usage: --enable-prompt-tokens-details
	head        []byte
	fingerprint []byte // of the server, as JSON
}

// newForm prepares the part that all pieces of an answer begin with.
func newForm(chat bool, p *params, id string, created int64, model, fingerprint string, details bool) form {
	object := map[bool]map[bool]string{
		false: {false: "text_completion", true: "text_completion"},
		true:  {false: "chat.completion", true: "chat.completion.chunk"},
	}[chat][p.stream]
	b := append([]byte(nil), `{"id":`...)
	b = appendJSON(b, id)
	b = append(b, `,"object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = appendInt(b, int(created))
	b = append(b, `,"model":`...)
	b = appendJSON(b, model)
	b = append(b, `,"choices":[`...)
	return form{
		chat: chat, stream: p.stream, usage: p.usage, continuous: p.continuous, details: details,
		head: b, fingerprint: appendJSON(nil, fingerprint),
	}
}

// chunk appends one event with the text that came, before it in a chat the
// event that opens the message: it comes with the first output.
func (f *form) chunk(b []byte, i int, c *choice, text string) []byte {
	if f.chat && !c.begun {
		b = append(b, "data: "...)
		b = append(b, f.head...)
		b = append(b, `{"index":`...)
		b = appendInt(b, i)
		b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
		if f.continuous {
			b = f.appendUsage(b, c.counted, 0)
		}
		b = append(b, `,"prompt_token_ids":null,"prompt_text":null}`+"\n\n"...)
	}
	b = append(b, "data: "...)
	b = append(b, f.head...)
	b = append(b, `{"index":`...)
	b = appendInt(b, i)
	if f.chat {
		b = append(b, `,"delta":{"content":`...)
		b = appendJSON(b, text)
		b = append(b, '}')
	} else {
		b = append(b, `,"text":`...)
		b = appendJSON(b, text)
	}
	b = append(b, `,"logprobs":null,"finish_reason":`...)
	b = appendReason(b, c.finish)
	switch {
	case !f.chat:
		b = append(b, `,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]`...)
	case c.finish != 0:
		b = append(b, `,"stop_reason":null,"token_ids":null}]`...)
	default:
		b = append(b, `,"token_ids":null}]`...)
	}
	if f.continuous {
		b = f.appendUsage(b, c.counted, c.tokens)
	}
	if c.finish != 0 && !f.usage {
		b = append(b, `,"system_fingerprint":`...)
		b = append(b, f.fingerprint...)
	}
	return append(b, "}\n\n"...)
}

// appendUsage appends the usage so far, as a chunk within a stream has it.
func (f *form) appendUsage(b []byte, prompt, output int) []byte {
	b = append(b, `,"usage":`...)
	b = appendCounts(b, prompt, output)
	if f.chat {
		b = append(b, `,"completion_tokens_details":null`...)
	}
	return append(b, '}')
}

func appendCounts(b []byte, prompt, output int) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = appendInt(b, prompt)
	b = append(b, `,"total_tokens":`...)
	b = appendInt(b, prompt+output)
	b = append(b, `,"completion_tokens":`...)
	return appendInt(b, output)
}

// total sums the usage over a request's choices. Cached tokens are those of the
// first, as vLLM tells them.
func total(choices []choice) (prompt, output, cached int) {
	for i := range choices {
		prompt += choices[i].prompt
		output += choices[i].tokens
	}
	return prompt, output, choices[0].cached
}

// last appends what ends a stream: the usage where it was asked for, and [DONE].
func (f *form) last(b []byte, choices []choice) []byte {
	if f.usage {
		prompt, output, cached := total(choices)
		b = append(b, "data: "...)
		b = append(b, f.head...)
		b = append(b, `],"usage":`...)
		b = appendCounts(b, prompt, output)
		if f.details {
			b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
			b = appendInt(b, cached)
			b = append(b, '}')
		}
		b = append(b, `},"system_fingerprint":`...)
		b = append(b, f.fingerprint...)
		b = append(b, "}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

// whole appends an answer in one piece.
func (f *form) whole(b []byte, choices []choice) []byte {
	b = append(b, f.head...)
	for i := range choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = f.appendChoice(b, i, &choices[i])
	}
	prompt, output, cached := total(choices)
	b = append(b, `],"service_tier":null,"system_fingerprint":`...)
	b = append(b, f.fingerprint...)
	b = append(b, `,"usage":`...)
	b = appendCounts(b, prompt, output)
	b = append(b, `,"prompt_tokens_details":`...)
	if f.details {
		b = append(b, `{"cached_tokens":`...)
		b = appendInt(b, cached)
		b = append(b, `,"created_cache_tokens":null,"multimodal_tokens":null}`...)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"completion_tokens_details":null}`...)
	if f.chat {
		b = append(b, `,"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null`...)
	}
	return append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`...)
}

func (f *form) appendChoice(b []byte, i int, c *choice) []byte {
	b = append(b, `{"index":`...)
	b = appendInt(b, i)
	if f.chat {
		b = append(b, `,"message":{"role":"assistant","content":`...)
		b = appendJSON(b, string(c.text))
		b = append(b, `,"refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null}`...)
	} else {
		b = append(b, `,"text":`...)
		b = appendJSON(b, string(c.text))
	}
	b = append(b, `,"logprobs":null,"finish_reason":`...)
	b = appendReason(b, c.finish)
	b = append(b, `,"stop_reason":null,"token_ids":null`...)
	if !f.chat {
		b = append(b, `,"prompt_logprobs":null,"prompt_token_ids":null`...)
	}
	return append(b, `,"routed_experts":null}`...)
}
