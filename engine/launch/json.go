package launch

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// decodeJSON parses one JSON value and keeps the spelling of numbers. It first expands sizes
// such as 80m, as vLLM does within JSON.
func decodeJSON(s string) (any, bool) {
	v, err := decodeStrict(s)
	if err != nil {
		if v, err = decodeStrict(expandSizes(s)); err != nil {
			return nil, false
		}
	}
	return v, true
}

func decodeStrict(s string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	return v, nil
}

var (
	quotedOrSize = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\b\d+(?:\.\d+)?[kKmMgGtT]\b`)
)

func expandSizes(s string) string {
	return quotedOrSize.ReplaceAllStringFunc(s, func(m string) string {
		if n, ok := humanInt(m); ok && m[0] != '"' {
			return strconv.Itoa(n)
		}
		return m
	})
}

// encodeJSON formats a value on one line with sorted keys.
func encodeJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// jsonAt returns the value at a path of keys in a JSON object: a string without quotes,
// anything else as JSON. It reports false for null and missing keys.
func jsonAt(object string, path []string) (string, bool) {
	v, ok := decodeJSON(object)
	if !ok {
		return "", false
	}
	for _, key := range path {
		m, isMap := v.(map[string]any)
		if !isMap {
			return "", false
		}
		if v, ok = m[key]; !ok {
			return "", false
		}
	}
	switch t := v.(type) {
	case nil:
		return "", false
	case string:
		return t, true
	}
	return encodeJSON(v), true
}

// dottedValue parses the value of a sub-key as vLLM does: JSON, else a number with a
// suffix, else a string; with "+", a comma-separated list of strings.
func dottedValue(s string, plus bool) any {
	if plus {
		list := []any{}
		for part := range strings.SplitSeq(s, ",") {
			list = append(list, part)
		}
		return list
	}
	if v, err := decodeStrict(s); err == nil {
		return v
	}
	if n, ok := humanInt(s); ok {
		return json.Number(strconv.Itoa(n))
	}
	return s
}

// mergeInto sets a path within an object: objects are merged, lists extended,
// anything else replaced.
func mergeInto(root map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		next, ok := root[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			root[key] = next
		}
		root = next
	}
	key := path[len(path)-1]
	old, haveMap := root[key].(map[string]any)
	update, isMap := value.(map[string]any)
	if haveMap && isMap {
		for k, v := range update {
			mergeInto(old, []string{k}, v)
		}
		return
	}
	oldList, haveList := root[key].([]any)
	if list, ok := value.([]any); ok && haveList {
		root[key] = append(oldList, list...)
		return
	}
	root[key] = value
}
