package probe

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode"
)

// A server's message is cut to maxMessageRunes and then ends in cutMark.
const (
	maxMessageRunes = 300
	cutMark         = "..."
)

// serverMessage returns the message of an error body: OpenAI's {"error": {"message"}}, {"error":
// "..."}, vLLM's older {"message"}, FastAPI's {"detail"}, or the text itself, as one line of
// limited length.
func serverMessage(body []byte) string {
	var fields struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	text := string(body)
	if json.Unmarshal(body, &fields) == nil {
		var nested struct {
			Message string `json:"message"`
		}
		var plain string
		switch {
		case json.Unmarshal(fields.Error, &nested) == nil && nested.Message != "":
			text = nested.Message
		case json.Unmarshal(fields.Error, &plain) == nil && plain != "":
			text = plain
		case fields.Message != "":
			text = fields.Message
		case json.Unmarshal(fields.Detail, &plain) == nil && plain != "":
			text = plain
		}
	}
	text = oneLine(text)
	if runes := []rune(text); len(runes) > maxMessageRunes {
		return string(runes[:maxMessageRunes]) + cutMark
	}
	return text
}

// printableReason returns a finish reason in printable form and of limited length.
func printableReason(reason string) string {
	if len(reason) > maxFinishRunes {
		runes := []rune(reason)
		reason = string(runes[:min(len(runes), maxFinishRunes)])
	}
	return oneLine(reason)
}

// oneLine makes untrusted text printable: one line, without control characters, which could move a
// terminal's cursor.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) {
			return r
		}
		return '?'
	}, text)), " ")
}

// minSecret is the minimum length of a header value to hide: a shorter one is not a secret, and may
// be part of ordinary words.
const minSecret = 8

// hide removes the API key and header values from a server's text, because some servers repeat what
// they refuse.
func (c *Client) hide(text string) string {
	secrets := []string{c.key}
	for _, values := range c.headers {
		for _, value := range values {
			secrets = append(append(secrets, value), strings.Fields(value)...)
		}
	}
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			text = withoutCutSecret(strings.ReplaceAll(text, secret, "[redacted]"), secret)
		}
	}
	return text
}

// hideIn removes secrets from errors that contain a server's text.
func (c *Client) hideIn(err error) error {
	var stream *StreamError
	var other *notStreamError
	switch {
	case errors.As(err, &stream):
		stream.Message = c.hide(stream.Message)
	case errors.As(err, &other):
		other.sentence = c.hide(other.sentence)
	}
	return err
}

// withoutCutSecret removes the first part of a secret from the end of a text that was cut.
func withoutCutSecret(text, secret string) string {
	head, cut := strings.CutSuffix(text, cutMark)
	for n := len(secret) - 1; cut && n >= minSecret; n-- {
		if kept, ends := strings.CutSuffix(head, secret[:n]); ends {
			return kept + cutMark
		}
	}
	return text
}
