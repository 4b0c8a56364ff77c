package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/common/model"
)

// Limits of one page, which bound memory against a hostile page. They are far above
// anything a server was seen to send (441 samples of one engine, labels of 1.2 kB).
const (
	maxSamples   = 1 << 16
	maxLineBytes = 1 << 16
	maxLabels    = 256
)

// Errors of a page, which Parse wraps with details.
var (
	// ErrNotMetrics means that the answer is not exposition text at all.
	ErrNotMetrics = errors.New("not a metrics page")
	// ErrTruncated means that the page ends in the middle of a line.
	ErrTruncated = errors.New("page truncated")
	// ErrMalformed means that a line that passed the filter does not parse.
	ErrMalformed = errors.New("malformed metrics page")
)

// Parse parses the samples of a page that pass the filter and replaces the contents of f
// with them. It skips comments, other families, timestamps and exemplars. It recognises
// series of earlier pages by their text. After an error f is empty.
func Parse(page []byte, filter *Filter, f *Families) error {
	f.dropStale()
	f.Reset()
	f.page++
	err := parse(page, filter, f)
	if err != nil {
		f.Reset()
	}
	return err
}

func parse(page []byte, filter *Filter, f *Families) error {
	page = bytes.TrimPrefix(page, []byte("\ufeff"))
	if err := sniff(page); err != nil {
		return err
	}
	if f.Samples == nil {
		// A sample takes about 100 bytes of a page, comments included, and most samples
		// pass the filter.
		f.Samples = make([]Sample, 0, min(len(page)/160, maxSamples))
	}
	for line, rest := 1, page; len(rest) > 0; line++ {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			if string(bytes.TrimSpace(rest)) == "# EOF" {
				break
			}
			return fmt.Errorf("%w: it ends in the middle of line %d", ErrTruncated, line)
		}
		text := bytes.TrimLeft(rest[:end], " \t")
		rest = rest[end+1:]
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		if err := f.sample(text, line, filter); err != nil {
			return err
		}
	}
	f.dedupe()
	return nil
}

// sniff returns an error for content that is certainly not exposition text.
func sniff(page []byte) error {
	start := bytes.TrimLeft(page, " \t\r\n")
	switch {
	case len(start) == 0:
		return fmt.Errorf("%w: it is empty", ErrNotMetrics)
	case start[0] == '<':
		return fmt.Errorf("%w: it answered with HTML", ErrNotMetrics)
	case start[0] == '[', start[0] == '{' && json.Valid(start):
		return fmt.Errorf("%w: it answered with JSON", ErrNotMetrics)
	case bytes.IndexByte(start[:min(len(start), 1024)], 0) >= 0:
		return fmt.Errorf("%w: it answered with binary data", ErrNotMetrics)
	}
	return nil
}

// sample adds the sample of one line if it passes the filter.
func (f *Families) sample(text []byte, line int, filter *Filter) error {
	if !filter.wants(nameOf(text)) {
		return nil
	}
	malformed := func(why string) error {
		return fmt.Errorf("%w: line %d: %s in %q", ErrMalformed, line, why, excerpt(text))
	}
	if len(text) > maxLineBytes {
		return malformed(fmt.Sprintf("more than %d bytes", maxLineBytes))
	}
	if len(f.Samples) == maxSamples {
		return fmt.Errorf("%w: more than %d samples", ErrMalformed, maxSamples)
	}
	end := seriesEnd(text)
	if end < 0 {
		return malformed("unterminated labels")
	}
	value, why := valueOf(text[end:])
	if why != "" {
		return malformed(why)
	}
	series, why := f.series(text[:end])
	if why != "" {
		return malformed(why)
	}
	f.Samples = append(f.Samples, Sample{Series: series, Value: value})
	return nil
}

// nameOf returns the wire name of a sample line, also a quoted one within the braces:
// {"name",label="value"}.
func nameOf(text []byte) []byte {
	if len(text) > 0 && text[0] == '{' {
		if name, quoted := bytes.CutPrefix(bytes.TrimLeft(text[1:], " \t"), []byte{'"'}); quoted {
			if end := bytes.IndexByte(name, '"'); end >= 0 {
				return name[:end]
			}
		}
		return nil
	}
	for i, c := range text {
		if c == '{' || c == ' ' || c == '\t' {
			return text[:i]
		}
	}
	return text
}

// seriesEnd returns the index after name and labels, -1 if the labels have no end. It
// ignores braces within quotes.
func seriesEnd(text []byte) int {
	i := len(nameOf(text))
	if text[0] == '{' {
		i = 0
	}
	for i < len(text) && (text[i] == ' ' || text[i] == '\t') {
		i++
	}
	if i == len(text) || text[i] != '{' {
		return i
	}
	quoted := false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return i + 1
		}
	}
	return -1
}

// valueOf parses the value after a series and skips an optional timestamp and exemplar.
// why says what is invalid, "" if nothing is.
func valueOf(rest []byte) (value float64, why string) {
	token, rest := word(rest)
	value, ok := parseNumber(token)
	if !ok {
		return 0, fmt.Sprintf("value %q", excerpt(token))
	}
	token, _ = word(rest)
	if len(token) > 0 && token[0] != '#' {
		if _, ok := parseNumber(token); !ok {
			return 0, fmt.Sprintf("timestamp %q", excerpt(token))
		}
	}
	return value, ""
}

// word splits off the next token. Blanks, tabs and carriage returns separate tokens.
func word(text []byte) (token, rest []byte) {
	text = bytes.TrimLeft(text, " \t\r")
	if end := bytes.IndexAny(text, " \t\r"); end >= 0 {
		return text[:end], text[end:]
	}
	return text, nil
}

// parseNumber parses a float as expfmt does: Go's syntax without hexadecimal digits
// and underscores.
func parseNumber(token []byte) (float64, bool) {
	if bytes.ContainsAny(token, "pP_") {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(token), 64)
	if errors.Is(err, strconv.ErrRange) && !math.IsInf(v, 0) {
		err = nil // too small to represent: zero is correct
	}
	return v, err == nil
}

// Names returns the first n distinct wire names of a page, to describe a page of which
// nothing passed the filter. It includes names of # TYPE lines, because the page of a
// server that just started may have no samples.
func Names(page []byte, n int) []string {
	var names []string
	seen := map[string]bool{}
	for line := range bytes.Lines(page) {
		text := bytes.TrimSpace(line)
		if declared, found := bytes.CutPrefix(text, []byte("# TYPE ")); found {
			text, _ = word(declared)
		} else if !isSample(text) {
			continue
		}
		name := string(excerpt(nameOf(text)))
		if seen[name] || !model.UTF8Validation.IsValidMetricName(name) {
			continue
		}
		seen[name] = true
		if !model.LegacyValidation.IsValidMetricName(name) {
			name = strconv.QuoteToGraphic(name) // it will be printed
		}
		if names = append(names, name); len(names) >= n {
			break
		}
	}
	return names
}

// isSample reports whether a line has a series and a value.
func isSample(text []byte) bool {
	if len(text) == 0 || text[0] == '#' {
		return false
	}
	end := seriesEnd(text)
	if end < 0 {
		return false
	}
	_, why := valueOf(text[end:])
	return why == ""
}

// excerpt returns at most the first 60 bytes of foreign text, cut between characters.
func excerpt(text []byte) []byte {
	const most = 60
	if len(text) <= most {
		return text
	}
	text = text[:most]
	for len(text) > 0 && !utf8.Valid(text[len(text)-1:]) && !utf8.RuneStart(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}
