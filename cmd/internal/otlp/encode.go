package otlp

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// encode is metrics on the wire, and how many points they have. MetricsData has the
// fields and numbers of an ExportMetricsServiceRequest (opentelemetry-proto,
// metrics/v1 and collector/metrics/v1).
func encode(res *resource.Resource, all []metricdata.Metrics) ([]byte, int64, error) {
	var n int64
	list := make([]*metricspb.Metric, 0, len(all))
	for _, m := range all {
		p := &metricspb.Metric{Name: m.Name, Description: m.Description, Unit: m.Unit}
		switch d := m.Data.(type) {
		case metricdata.Gauge[float64]:
			p.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: numbers(d.DataPoints)}}
		case metricdata.Sum[float64]:
			p.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{
				DataPoints: numbers(d.DataPoints), IsMonotonic: d.IsMonotonic,
				AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE,
			}}
		case metricdata.Histogram[float64]:
			p.Data = &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{
				DataPoints:             distributions(d.DataPoints),
				AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE,
			}}
		default:
			return nil, 0, fmt.Errorf("metric %s holds %T", m.Name, m.Data)
		}
		n += int64(points(m))
		list = append(list, p)
	}
	body, err := proto.Marshal(&metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource:  &resourcepb.Resource{Attributes: keyValues(*res.Set())},
		SchemaUrl: res.SchemaURL(),
		ScopeMetrics: []*metricspb.ScopeMetrics{{
			Scope: &commonpb.InstrumentationScope{Name: scope}, SchemaUrl: schemaURL, Metrics: list,
		}},
	}}})
	return body, n, err
}

// points counts the data points of a metric.
func points(m metricdata.Metrics) int {
	switch d := m.Data.(type) {
	case metricdata.Gauge[float64]:
		return len(d.DataPoints)
	case metricdata.Sum[float64]:
		return len(d.DataPoints)
	case metricdata.Histogram[float64]:
		return len(d.DataPoints)
	}
	return 0
}

func numbers(all []metricdata.DataPoint[float64]) []*metricspb.NumberDataPoint {
	list := make([]*metricspb.NumberDataPoint, len(all))
	for i, d := range all {
		list[i] = &metricspb.NumberDataPoint{
			Attributes: keyValues(d.Attributes), TimeUnixNano: uint64(d.Time.UnixNano()),
			Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: d.Value},
		}
		if !d.StartTime.IsZero() {
			list[i].StartTimeUnixNano = uint64(d.StartTime.UnixNano())
		}
	}
	return list
}

func distributions(all []metricdata.HistogramDataPoint[float64]) []*metricspb.HistogramDataPoint {
	list := make([]*metricspb.HistogramDataPoint, len(all))
	for i, d := range all {
		list[i] = &metricspb.HistogramDataPoint{
			Attributes: keyValues(d.Attributes), Count: d.Count, Sum: &d.Sum,
			StartTimeUnixNano: uint64(d.StartTime.UnixNano()), TimeUnixNano: uint64(d.Time.UnixNano()),
			ExplicitBounds: d.Bounds, BucketCounts: d.BucketCounts,
		}
		if v, ok := d.Min.Value(); ok {
			list[i].Min = &v
		}
		if v, ok := d.Max.Value(); ok {
			list[i].Max = &v
		}
	}
	return list
}

// valid replaces bytes that are no UTF-8, which protobuf refuses together with all
// that stands beside them: a process may call itself anything.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// validUTF8 makes the text of spans valid.
func validUTF8(list []*tracepb.ResourceSpans) {
	for _, r := range list {
		validValues(r.GetResource().GetAttributes())
		for _, in := range r.ScopeSpans {
			for _, s := range in.Spans {
				s.Name = valid(s.Name)
				validValues(s.Attributes)
				if s.Status != nil {
					s.Status.Message = valid(s.Status.Message)
				}
			}
		}
	}
}

func validValues(list []*commonpb.KeyValue) {
	for _, kv := range list {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			v.StringValue = valid(v.StringValue)
		case *commonpb.AnyValue_ArrayValue:
			for _, one := range v.ArrayValue.GetValues() {
				if text, ok := one.Value.(*commonpb.AnyValue_StringValue); ok {
					text.StringValue = valid(text.StringValue)
				}
			}
		}
	}
}

// keyValues takes the kinds of value that attributes have here: text and whole
// numbers.
func keyValues(set attribute.Set) []*commonpb.KeyValue {
	list := make([]*commonpb.KeyValue, 0, set.Len())
	for i := set.Iter(); i.Next(); {
		kv := i.Attribute()
		v := &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: valid(kv.Value.String())}}
		if kv.Value.Type() == attribute.INT64 {
			v.Value = &commonpb.AnyValue_IntValue{IntValue: kv.Value.AsInt64()}
		}
		list = append(list, &commonpb.KeyValue{Key: string(kv.Key), Value: v})
	}
	return list
}
