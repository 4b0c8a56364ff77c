package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
)

// listModels asks which names requests may carry. A server that does not tell takes
// the name that was given.
func (s *subject) listModels(ctx context.Context) {
	body, err := s.client.Get(ctx, "/v1/models", "application/json", nil)
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

// model is the name that requests carry, "" for the server's first: the catalog's name
// of a model that is served under another says which it is, for the ceilings. Any other
// name is sent as it was given. Gateways list not all they know, Ollama no short names;
// a server that knows it not says so.
func (s *subject) model() string {
	given := s.o.model
	switch {
	case given == "", len(s.served) == 0, slices.Contains(s.served, given), slices.Contains(s.served, given+":latest"),
		len(s.served) > 1 && s.engine != "vLLM":
		return given
	}
	if _, err := s.catalog().FindModel(given); err != nil {
		return given
	}
	return ""
}

// modelName is the model for the reader.
func (s *subject) modelName() string {
	if len(s.served) > 0 && !slices.Contains(s.served, s.o.model) {
		return s.served[0]
	}
	return s.o.model
}

// catalog is rooftop's own with that of the person, as it was read at first.
func (s *subject) catalog() *catalog.Catalog {
	c := catalog.Default()
	if s.header.Catalog == "" {
		return c
	}
	if with, err := c.With(strings.NewReader(s.header.Catalog), s.header.CatalogName); err == nil {
		c = with
	}
	return c
}
