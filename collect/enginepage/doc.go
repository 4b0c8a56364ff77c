// Package enginepage reads the metrics page of an inference server, in every release and spelling of the
// engines that it is given. A [Dialect] says what the families of one engine's page mean; names and aliases
// come from the catalog. It sends only GET requests, one at a time, and none that changes state.
//
// A value that a page lacks is absent, never zero. Values under old and new names of one metric are never
// added up.
package enginepage
