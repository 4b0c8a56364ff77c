package vllmsim

import (
	"encoding/json"
	"net/http"
	"strings"
)

// chat answers POST /v1/chat/completions.
func (f *incarnation) chat(w http.ResponseWriter, r *http.Request) *refusal {
	body, refused := readFields(w, r)
	if refused != nil {
		return refused
	}
	p, refused := readParams(body, f.settings.StreamInterval, 0, "max_completion_tokens", "max_tokens")
	if refused != nil {
		return refused
	}
	prompt, refused := readChat(body)
	if refused != nil {
		return refused
	}
	return f.generate(w, r, &p, true, Call{Prompt: prompt})
}

// message is one turn of a chat.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Calls   json.RawMessage `json:"tool_calls"`
}

// readChat renders a request's messages as the prompt. The template is ChatML, of which each mark is one token
// here: a message costs five tokens in addition to its text (six if the role's name has more than six
// letters). An assistant's answer follows the same marks as when it was generated, so that it has the same
// tokens and its cached blocks are found.
func readChat(f fields) (string, *refusal) {
	var messages []message
	if f.absent("messages") {
		return "", invalid("body.messages", "messages: Field required")
	}
	if json.Unmarshal(f["messages"], &messages) != nil {
		return "", invalid("body.messages", "messages: Input should be a list of messages")
	}
	if len(messages) == 0 {
		return "", invalid("body.messages", "messages: List should have at least 1 item after validation, not 0")
	}
	generation := true
	if refused := f.read("add_generation_prompt", &generation); refused != nil {
		return "", refused
	}
	var b strings.Builder
	for i := range messages {
		m := &messages[i]
		if m.Role == "" {
			return "", invalid("body.messages", "messages: role: Field required")
		}
		if m.Role == "tool" || m.Role == "function" || !(fields{"calls": m.Calls}).empty("calls") {
			return "", unsupported("tool_calls", "no model calls tools here")
		}
		text, refused := m.text()
		if refused != nil {
			return "", refused
		}
		b.WriteString("<|im_start|>" + m.Role + "\n" + text + "<|im_end|>\n")
	}
	if generation {
		b.WriteString("<|im_start|>assistant\n")
	}
	return b.String(), nil
}

// text returns the text of a message, which is a string or a list of text parts.
func (m *message) text() (string, *refusal) {
	var one string
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &one) == nil {
		return one, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return "", invalid("body.messages", "messages: content: Input should be a string or a list of parts")
	}
	var texts []string
	for _, p := range parts {
		if p.Type != "text" && p.Type != "input_text" || p.Text == nil {
			return "", unsupported("messages.content", "a part of type "+p.Type+" is not text")
		}
		texts = append(texts, *p.Text)
	}
	return strings.Join(texts, "\n"), nil
}
