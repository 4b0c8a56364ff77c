package probe

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// A server's mean that includes other requests must not be shown as a part of the time of these requests.
func TestTTFTThatIsNotDivided(t *testing.T) {
	s := capture.ServerTTFT{Client: stat.Some(0.2), Server: stat.Some(0.3), From: "vLLM metrics", Reason: "its mean is of others too"}
	if got := (&report{}).splitTTFT(&s).String(); strings.Contains(got, "=") || !strings.Contains(got, s.Reason) {
		t.Errorf("got %q", got)
	}
}
