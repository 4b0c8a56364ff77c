package enginepage

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Clip returns a foreign string for display and recording: valid UTF-8 without control
// characters, at most 512 bytes.
func Clip(s string) string {
	const most = 512
	s = strings.ToValidUTF8(strings.Map(printable, s), "")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// printable drops control characters, which a terminal would interpret.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
		return -1
	}
	return r
}

// Setting returns a JSON string, boolean or number as a command line has it, clipped; "" for any other value.
func Setting(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	switch v := v.(type) {
	case string:
		return Clip(v)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strings.TrimSpace(string(raw))
	}
	return ""
}
