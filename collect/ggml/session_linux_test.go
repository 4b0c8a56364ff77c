//go:build amd64 || arm64

package ggml

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// sessionOn returns a session that reads a ring without being attached.
func sessionOn(f *fake) *Session {
	return &Session{runtime: &layouts.Runtime{}, ring: f.ring, decoder: newDecoder(layouts.Layout{}, layouts.Names{}, nil), whole: true}
}

// sample writes the record of a token choice.
func (f *fake) sample(at uint64) {
	record := make([]byte, headerSize)
	binary.LittleEndian.PutUint64(record[offAt:], at)
	binary.LittleEndian.PutUint32(record[offCookie:], uint32(optrace.SampleBegin))
	f.write(record)
}

// When the target or the context ends, Next returns everything in the ring to the last record,
// without waiting for more.
func TestWhatIsLeftIsHandedOut(t *testing.T) {
	const ring = 4 * maxDrain
	records := ring/(headerSize+ringWord) - 1
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		end  error
		want error
	}{
		"the target ended": {context.Background(), io.EOF, io.EOF},
		"the caller stops": {over, nil, context.Canceled},
	} {
		f := newFake(ring)
		s := sessionOn(f)
		s.end = c.end
		for i := range records {
			f.sample(uint64(i))
		}
		events, err := s.Next(c.ctx)
		if err != nil || len(events) != records {
			t.Errorf("%s: %d of %d events, %v", name, len(events), records, err)
		}
		f.sample(uint64(records))
		if events, err = s.Next(c.ctx); len(events) != 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: then %d events, %v", name, len(events), err)
		}
	}
}
