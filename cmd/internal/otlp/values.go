package otlp

import (
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// attributes distinguish points or spans. Each method returns them with one more attribute, and
// does not change its receiver.
type attributes []*commonpb.KeyValue

func (a attributes) with(key string, v *commonpb.AnyValue) attributes {
	return append(a[:len(a):len(a)], &commonpb.KeyValue{Key: key, Value: v})
}

// text adds a text unless it is empty.
func (a attributes) text(key, v string) attributes {
	if v == "" {
		return a
	}
	return a.with(key, textValue(v))
}

func (a attributes) int(key string, v int) attributes {
	return a.with(key, &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(v)}})
}

// count adds a whole number unless it is absent.
func (a attributes) count(key string, v stat.Opt) attributes {
	if !v.OK {
		return a
	}
	return a.int(key, int(v.V))
}

func (a attributes) float(key string, v float64) attributes {
	return a.with(key, &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v}})
}

func (a attributes) bool(key string, v bool) attributes {
	return a.with(key, &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}})
}

// list adds a list of one text unless the text is empty.
func (a attributes) list(key, v string) attributes {
	if v == "" {
		return a
	}
	list := &commonpb.ArrayValue{Values: []*commonpb.AnyValue{textValue(v)}}
	return a.with(key, &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}})
}

// textValue replaces bytes that are not UTF-8, because protobuf would reject the whole message: a
// process can have any name.
func textValue(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: valid(s)}}
}

func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
