package otlp

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// partial is what a collector did not take of what it was sent.
type partial struct {
	rejected int64  // spans or data points
	message  string // why; with nothing rejected it is a warning
}

// parsePartial reads an ExportTraceServiceResponse or ExportMetricsServiceResponse:
// both hold, as field 1, a partial success of the count (1) and the message (2)
// (opentelemetry-proto, collector/*/v1). An answer that is neither has no complaint.
func parsePartial(b []byte) partial {
	var p partial
	fields(b, func(n protowire.Number, _ uint64, inner []byte) {
		if n != 1 {
			return
		}
		fields(inner, func(n protowire.Number, v uint64, text []byte) {
			switch {
			case n == 1 && text == nil:
				p.rejected = int64(v)
			case n == 2:
				p.message = clean(text)
			}
		})
	})
	return p
}

// statusMessage is the message (2) of a google.rpc.Status, the form that OTLP asks
// of the body of an error.
func statusMessage(b []byte) string {
	var s string
	fields(b, func(n protowire.Number, _ uint64, text []byte) {
		if n == 2 {
			s = clean(text)
		}
	})
	return s
}

// fields visits the fields of a message that are numbers or bytes, up to the first
// that cannot be read.
func fields(b []byte, visit func(n protowire.Number, v uint64, bytes []byte)) {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return
		}
		b = b[size:]
		switch kind {
		case protowire.VarintType:
			v, size := protowire.ConsumeVarint(b)
			if size < 0 {
				return
			}
			visit(n, v, nil)
			b = b[size:]
		case protowire.BytesType:
			v, size := protowire.ConsumeBytes(b)
			if size < 0 {
				return
			}
			visit(n, 0, v)
			b = b[size:]
		default:
			size := protowire.ConsumeFieldValue(n, kind, b)
			if size < 0 {
				return
			}
			b = b[size:]
		}
	}
}

const maxWords = 200

// clean makes what a collector said fit for a sentence: one line, not long.
func clean(b []byte) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "\ufffd")), " ")
	if len(s) > maxWords {
		s = strings.ToValidUTF8(s[:maxWords], "") + "…"
	}
	return s
}
