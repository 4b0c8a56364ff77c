package proberun

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// listModels asks the server which model names it accepts. If the server does not list any, the
// given name is used.
func (s *subject) listModels(ctx context.Context) {
	body, err := s.Client.Get(ctx, "/v1/models", "application/json", nil)
	if err != nil {
		return
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil {
		return
	}
	for _, m := range list.Data {
		s.served = append(s.served, m.ID)
	}
}

// model returns the model name for requests, "" for the server's first. If --model is the catalog's
// name of a model that is served under another name, it identifies the model for the ceilings only.
// Any other name is sent as given: gateways do not list all models, Ollama does not list short
// names, and a server rejects unknown names.
func (s *subject) model() string {
	given := s.o.Model
	switch {
	case given == "", len(s.served) == 0, slices.Contains(s.served, given), slices.Contains(s.served, given+":latest"),
		len(s.served) > 1 && s.engine != catalog.EngineOf(catalog.VLLM).Name:
		return given
	}
	if _, err := s.catalog().FindModel(given); err != nil {
		return given
	}
	return ""
}

// modelName returns the name of the model for reports.
func (s *subject) modelName() string {
	if len(s.served) > 0 && !slices.Contains(s.served, s.o.Model) {
		return s.served[0]
	}
	return s.o.Model
}

// catalog returns the built-in catalog with the user's additions, as read at the start.
func (s *subject) catalog() *catalog.Catalog {
	c := catalog.Default()
	if s.Header.Catalog == "" {
		return c
	}
	if with, err := c.With(strings.NewReader(s.Header.Catalog), s.Header.CatalogName); err == nil {
		c = with
	}
	return c
}
