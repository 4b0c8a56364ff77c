package mcpserver

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rooftop-dev/rooftop/cmd/internal/pastruns"
)

// Addresses of resources.
const (
	historyAddress = "rooftop://runs"
	runAddress     = historyAddress + "/{name}"
)

func (s *Server) addRuns() {
	s.mcp.AddResource(&mcp.Resource{
		URI: historyAddress, Name: "runs", Title: "Past runs", MIMEType: "application/json",
		Description: "The latest past runs of rooftop, as a rooftop.history/v1 document. " + runAddress + " is the report of one.",
	}, func(ctx context.Context, q *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		text, err := s.c.Command(ctx, "history", "--json")
		return content(q, "application/json", text), err
	})
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: runAddress, Name: "run", Title: "Report of a past run", MIMEType: "text/markdown",
		Description: "What a run measured, changed and kept, as Markdown. The name is one of " + historyAddress + ", its number, or last.",
	}, func(_ context.Context, q *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		r, err := s.run(strings.TrimPrefix(q.Params.URI, historyAddress+"/"))
		if err != nil {
			return nil, mcp.ResourceNotFoundError(q.Params.URI)
		}
		text, err := pastruns.Report(&r, pastruns.Markdown)
		return content(q, "text/markdown", clean(string(text))), err
	})
}

func content(q *mcp.ReadResourceRequest, kind, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: q.Params.URI, MIMEType: kind, Text: text}}}
}
