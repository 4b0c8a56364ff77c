package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// messages passes on what a client sends, one message per line as in the protocol. It answers an invalid line itself,
// because the SDK would end the session and with it the change. The session ends as soon as the client has closed
// its end, also while a measurement is under way.
type messages struct {
	io.Closer
	in     *bufio.Reader
	answer io.Writer
	end    context.CancelCauseFunc
	rest   []byte // of a message, not yet passed on
}

func newMessages(in io.ReadCloser, answer io.Writer, end context.CancelCauseFunc) *messages {
	return &messages{Closer: in, in: bufio.NewReader(in), answer: answer, end: end}
}

// Read implements [io.Reader].
func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.line()
		if text := bytes.TrimSpace(line); len(text) > 0 {
			if _, e := jsonrpc.DecodeMessage(text); e == nil && len(line) <= mcp.DefaultMaxLineLength {
				m.rest = line
			} else if _, e := fmt.Fprintf(m.answer, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"not a message of JSON-RPC: write one JSON object a line, of at most %d MiB"}}`+"\n", jsonrpc.CodeParseError, mcp.DefaultMaxLineLength>>20); e != nil {
				return 0, e
			}
		}
		if err != nil {
			m.end(errGone)
			if len(m.rest) == 0 {
				return 0, err
			}
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// line reads a line. If the line is too long, it returns the beginning.
func (m *messages) line() (line []byte, err error) {
	for {
		part, err := m.in.ReadSlice('\n')
		if len(line) <= mcp.DefaultMaxLineLength {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
