package loadgen

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// columns are the fields of a CSV trace, with their names in public traces: Azure LLM inference
// 2023 and 2024, BurstGPT, Vidur and Splitwise.
var columns = []struct {
	names    []string
	required bool
}{
	{[]string{"timestamp", "arrived_at", "arrival_timestamp", "arrival_time"}, false},
	{[]string{"contexttokens", "request tokens", "num_prefill_tokens", "prompt_size", "input_length"}, true},
	{[]string{"generatedtokens", "response tokens", "num_decode_tokens", "token_size", "output_length"}, true},
}

// parseCSV parses a CSV trace with a header.
func parseCSV(r io.Reader) (*Trace, error) {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return nil, csvError(err)
	}
	place, err := findColumns(header)
	if err != nil {
		return nil, err
	}
	t := &Trace{Timed: place[0] >= 0}
	var origin time.Time
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, csvError(err)
		}
		line, _ := in.FieldPos(0)
		var request Traced
		for i, to := range []*int{&request.PromptTokens, &request.OutputTokens} {
			at := place[i+1]
			n, err := strconv.Atoi(strings.TrimSpace(record[at]))
			if err != nil {
				return nil, wrongAt(line, "%s is %q, not a whole number", columns[i+1].names[0], record[at])
			}
			if err := checkTokens(line, columns[i+1].names[0], n); err != nil {
				return nil, err
			}
			*to = n
		}
		if t.Timed {
			stamp, ok := parseStamp(record[place[0]])
			if !ok {
				return nil, wrongAt(line, "timestamp is %q: give a date as 2023-11-16 18:15:46.68, or seconds", record[place[0]])
			}
			if len(t.Requests) == 0 {
				origin = stamp
			}
			request.At = stamp.Sub(origin)
			if request.At.Abs() > maxTraceSpan {
				return nil, wrongAt(line, "timestamp is %q, which is years from the first", record[place[0]])
			}
		}
		t.Requests = append(t.Requests, request)
	}
}

// maxTraceSpan limits the times of a trace, so that sums of them do not overflow.
const maxTraceSpan = 10 * 365 * 24 * time.Hour

// findColumns returns the index of each of columns, -1 for a missing one.
func findColumns(header []string) ([]int, error) {
	place := make([]int, len(columns))
	for i, column := range columns {
		place[i] = slices.IndexFunc(header, func(name string) bool {
			return slices.Contains(column.names, strings.ToLower(strings.TrimSpace(name)))
		})
		if place[i] < 0 && column.required {
			return nil, wrongAt(1, "the header has no column of %s: give TIMESTAMP,ContextTokens,GeneratedTokens, or JSON lines", column.names[0])
		}
	}
	return place, nil
}

// parseStamp parses an arrival time. Only differences between them matter.
func parseStamp(text string) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if !(seconds > -maxTraceSpan.Seconds()*10 && seconds < maxTraceSpan.Seconds()*10) {
			return time.Time{}, false
		}
		whole := int64(seconds)
		return time.Unix(whole, int64((seconds-float64(whole))*1e9)), true
	}
	for _, layout := range []string{"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// csvError adds the line to an error of the CSV reader.
func csvError(err error) error {
	var wrong *csv.ParseError
	if errors.As(err, &wrong) {
		return wrongAt(wrong.Line, "column %d: %w", wrong.Column, wrong.Err)
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the trace has no header")
	}
	return err
}
