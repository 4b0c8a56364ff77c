package otlp

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// partial is the part of a message that a collector rejected.
type partial struct {
	rejected int64  // spans or data points
	message  string // why; a warning if nothing was rejected
}

// parsePartial parses an ExportTraceServiceResponse or ExportMetricsServiceResponse: both have, as
// field 1, a partial success with the count (1) and the message (2) (opentelemetry-proto,
// collector/*/v1). The Go types of these import gRPC. Any other body rejects nothing.
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

// statusMessage returns the message (2) of a google.rpc.Status, which OTLP requires as the body of
// an error.
func statusMessage(b []byte) string {
	var s string
	fields(b, func(n protowire.Number, _ uint64, text []byte) {
		if n == 2 {
			s = clean(text)
		}
	})
	return s
}

// fields calls visit for the fields of a message with numbers or bytes, up to the first malformed
// one.
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

const maxMessageBytes = 200

// clean makes a collector's message printable: one line of limited length.
func clean(b []byte) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "\ufffd")), " ")
	if len(s) > maxMessageBytes {
		s = strings.ToValidUTF8(s[:maxMessageBytes], "") + "…"
	}
	return s
}
