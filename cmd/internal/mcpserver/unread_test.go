package mcpserver_test

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rooftop-dev/rooftop/cmd/internal/mcpserver"
)

// deaf is the connection of a client that stops reading.
type deaf struct {
	net.Conn
	stop, end chan struct{}
}

func (d deaf) Read(p []byte) (int, error) {
	select {
	case <-d.stop:
		<-d.end
	default:
	}
	return d.Conn.Read(p)
}

// The change of a client that no longer reads answers is reverted, like that of one that has disconnected.
func TestAClientThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, crowded)
		r.mayChange()
		ours, theirs := net.Pipe()
		d := deaf{theirs, make(chan struct{}), make(chan struct{})}
		go func() { r.served <- mcpserver.New(r.config).Serve(t.Context(), ours, ours) }()
		var err error
		if r.agent, err = mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: d, Writer: theirs}, nil); err != nil {
			t.Fatal(err)
		}
		r.must("measure", arguments{"server": serverURL, "duration_s": 10})
		r.must("apply", arguments{"flag": "--max-num-seqs", "to": "24"})
		close(d.stop)
		go func() {
			q := &mcp.CallToolParams{Name: "measure", Arguments: arguments{"server": serverURL, "duration_s": 3600}}
			q.SetProgressToken("p")
			_, _ = r.agent.CallTool(t.Context(), q)
		}()
		began := time.Now()
		if err := <-r.served; err == nil || !strings.Contains(err.Error(), "the client reads no answers") {
			t.Errorf("rooftop ended with %v", err)
		}
		if took := time.Since(began); r.reverts != 1 || !strings.Contains(r.host.Command(), "--max-num-seqs 16") || took > 2*time.Minute {
			t.Errorf("%d reverts after %v; the server runs %s", r.reverts, took, r.host.Command())
		}
		close(d.end)
		_ = r.agent.Close()
	})
}
