// Package schema holds the JSON Schema (draft 2020-12) of every message and document of the hook protocol. The files are
// generated from the Go types and their comments.
package schema

import "embed"

//go:generate go run ./generate ..

// Files are the schemas:
//
//	review-request.json         what is sent: a TaskReview with its request
//	review-response.json        what is answered: a TaskReview with its response
//	review-list-request.json    the same for lists (batch)
//	review-list-response.json
//	taskhook.json               the documents that register a hook
//
//go:embed *.json
var Files embed.FS
