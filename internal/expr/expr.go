// Package expr is the contract between the engine and the manifest languages: how texts with placeholders, expressions
// and conditions are evaluated against the variables of a scope. The languages themselves are in its sub-folders
// (argoexpr, kfpexpr); the engine sees only [Language].
//
// Evaluation is pure: the time and the random seed come with the call, so the same call gives the same value.
package expr

import (
	"fmt"
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// Presence says whether a scope has a value at a path.
type Presence int

const (
	// Absent says that nothing has that name.
	Absent Presence = iota
	// Present says that the value is there (it may be nil: a JSON null).
	Present
	// Skipped says that it is declared, but what would produce it was skipped, omitted or failed and no default stands in.
	Skipped
)

// Scope gives the variables that texts and expressions may read. Paths, with their values:
//
//	inputs.parameters.<n>               the template's input
//	inputs.artifacts.<n>                []program.Artifact; deeper: .path .uri .key .json .type .metadata.<k>
//	outputs.parameters.<n>.path         where the task must write it (a leaf's own scope)
//	outputs.artifacts.<n>               []program.Artifact; .path .uri .key
//	tasks.<call>.…                      a call of the same graph that has ended: id, name, path, status, message,
//	                                    exitCode, startedAt, finishedAt (RFC 3339), hostNodeName, ip, reused,
//	                                    outputs.result, outputs.parameters.<n>, outputs.artifacts.<n>, hooks.<h>.<k>,
//	                                    inputs.parameters.<n>; lists over a loop's items. "steps.…" is the same.
//	item, item.<k>                      the loop's item
//	hooks.<h>.<k>                       placeholders that Pre hooks answered, those of enclosing graphs included
//	workflow.…                          name, namespace, uid, mainEntrypoint, serviceAccountName, priority, status,
//	                                    failures, duration (seconds), creationTimestamp (time.Time), scheduledTime,
//	                                    parameters.<n>, labels.<k>, annotations.<k>, outputs.parameters.<n>,
//	                                    outputs.artifacts.<n>, artifactRoot, title
//	retries, lastRetry.{exitCode,status,duration,message}
//	node.{name,id}, pod.name, task.{name,title,uid}
//	status, duration, exitCode          only for lifecycle and metrics expressions
//
// A path may stop early: Lookup then returns a map with all that is below it.
type Scope interface {
	Lookup(path []string) (any, Presence)
}

// Env is what one evaluation sees.
type Env struct {
	Scope
	// Now and Seed are the event's; every function that asks for time or randomness uses them.
	Now  time.Time
	Seed uint64
}

// UnresolvedError says that a placeholder could not be given a value.
type UnresolvedError struct {
	// Tag is the placeholder as written, without its braces.
	Tag string
	// Skipped is true where the producer exists but was skipped or omitted.
	Skipped bool
}

func (e *UnresolvedError) Error() string {
	if e.Skipped {
		return fmt.Sprintf("unable to resolve {{%s}}: what produces it was skipped or omitted and there is no default", e.Tag)
	}
	return fmt.Sprintf("failed to resolve {{%s}}", e.Tag)
}

// Language evaluates the texts of one manifest language. Implementations are stateless apart from caches of compiled
// sources, safe for concurrent use, and never panic on any source.
type Language interface {
	// Text replaces the placeholders in src. Non-text values are written as JSON (numbers without exponent where
	// they are whole). A placeholder of a known name without a value is an *UnresolvedError; braces that are no
	// placeholder of the language stay as they are.
	Text(src string, env Env) (string, error)
	// Args is Text for a command line, where one element may become several or none (KFP's IfPresent).
	Args(src []string, env Env) ([]string, error)
	// Value evaluates an expression (without braces) to a JSON value: nil, bool, int64, float64, string, []any,
	// map[string]any.
	Value(src string, env Env) (any, error)
	// Condition decides a condition; a result that is no boolean is an error.
	Condition(c program.Condition, env Env) (bool, error)
	// Select evaluates an expression over one value (KFP's parameterExpressionSelector).
	Select(src string, value any) (any, error)

	// Parameter converts a value to a declared type, or says why it cannot be one. Argo's texts stay texts.
	Parameter(value any, typ program.Type) (any, error)
	// ItemName is the short text for a loop's item in a node's name, e.g. "foo" in "print(0:foo)"; empty for none.
	ItemName(item any) string
	// OutputArtifact says where an output artifact of an attempt is to be stored, and its path in the task.
	OutputArtifact(o OutputSite, decl program.OutputArtifact) (program.Artifact, string, error)
	// InputPath is where an input artifact without a declared path appears in the task.
	InputPath(a program.Artifact) string
	// EncodeArtifact gives an artifact's JSON in the user's dialect, and DecodeArtifact reads it, or ours, back.
	EncodeArtifact(a program.Artifact) (string, error)
	DecodeArtifact(text string) (program.Artifact, error)
}

// OutputSite says for which attempt an output artifact is placed.
type OutputSite struct {
	Run, UID, Namespace string
	// Root is the run's artifact root: a folder's path or a URI; Program is the program's name.
	Root, Program string
	// Repository is Argo's artifact repository, which goes before Root: a store block whose keyFormat has its placeholders
	// resolved.
	Repository program.JSON
	// Task is the call's name, Path the node's path, Pod its pod name, Attempt its number from 0.
	Task, Path, Pod string
	Attempt         int
}
