package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/capacity"
	"github.com/sluice-ml/sluice/internal/kfp"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/submission"
)

// finding is one thing that lint has to say.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"`
}

func (f finding) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Line > 0 && f.Column > 0 {
		fmt.Fprintf(&b, ":%d", f.Column)
	}
	if f.Path != "" {
		b.WriteString(": " + f.Path)
	}
	b.WriteString(": ")
	if f.Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(f.Message)
	return b.String()
}

func (a *app) lintCommand() *cobra.Command {
	var out string
	var submit submitFlags
	var strict bool
	var pool string
	c := &cobra.Command{
		Use:   "lint FILE|FOLDER...",
		Short: "Check manifests without running them",
		Long: `Check manifests without running them: every mistake is named with its file, line, column and path. Files that refer to templates
of each other are given together, or with -f and --templates.

With --capacity it also says of each template whether a pool of machines would take its pods, and at which size, or the
rule that it breaks and the field of the pod that it is about.

Exit codes: 0 all are good, 2 some are not.`,
		Args: atLeastOne("files or folders"),
		RunE: func(c *cobra.Command, args []string) error {
			var profile capacity.Profile
			if pool != "" {
				var err error
				if profile, err = capacity.Named(pool); err != nil {
					return usage("--capacity: %w", err)
				}
			}
			parameters, err := parameterFlags(submit.parameters)
			if err != nil {
				return err
			}
			docs, err := a.lintDocuments(args)
			if err != nil {
				return err
			}
			others, err := submit.others(a)
			if err != nil {
				return err
			}
			artifacts, err := artifactFlags(submit.artifacts)
			if err != nil {
				return err
			}
			var all []finding
			var pods []judged
			bad := 0
			for i, d := range docs {
				with := append([]store.Document{}, others...)
				for j, other := range docs {
					if j != i && len(docs) > 1 && argo.IsArgo(other.Data) {
						with = append(with, other)
					}
				}
				found := slices.DeleteFunc(lint(d, with, artifacts), func(f finding) bool { // others are checked in their turn
					return f.File != d.Name && slices.ContainsFunc(docs, func(o store.Document) bool { return o.Name == f.File })
				})
				wrong := slices.ContainsFunc(found, func(f finding) bool { return !f.Warning || strict })
				if profile != nil {
					judgements := judge(c.Context(), profile, d, with, parameters)
					pods, wrong = append(pods, judgements...), wrong || len(misfits(judgements)) > 0
				}
				if wrong {
					bad++
				}
				all = append(all, found...)
			}
			if out == "" && profile != nil {
				printJudged(a.Stdout, profile.Name(), pods)
			}
			return a.printFindings(out, all, pods, len(docs), bad)
		},
	}
	outputFlag(c, &out, "json", "yaml")
	fl := c.Flags()
	fl.StringArrayVarP(&submit.files, "file", "f", nil, "`file` of more documents that the manifests refer to (repeatable)")
	fl.StringArrayVar(&submit.templates, "templates", nil, "`folder` whose YAML and JSON files are given as with -f")
	fl.StringArrayVar(&submit.artifacts, "artifact", nil, "an artifact that runs will be given: `name=URI` (repeatable)")
	fl.StringArrayVarP(&submit.parameters, "parameter", "p", nil, "a parameter that runs will be given: `name=value` (repeatable); for --capacity")
	fl.StringVar(&pool, "capacity", "", "also say whether a `pool` of machines takes each template's pods: "+capacityNames())
	_ = c.RegisterFlagCompletionFunc("capacity", cobra.FixedCompletions(capacity.Names(), cobra.ShellCompDirectiveNoFileComp))
	fl.BoolVar(&strict, "strict", false, "warnings count as mistakes")
	return c
}

func (a *app) lintDocuments(args []string) ([]store.Document, error) {
	var docs []store.Document
	for _, name := range args {
		if isFolder(name) {
			in, err := a.readFolder(name)
			if err != nil {
				return nil, err
			}
			if len(in) == 0 {
				return nil, usage("folder %s has no YAML or JSON file", name)
			}
			docs = append(docs, in...)
			continue
		}
		doc, err := a.readFile(name)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// lint checks one document.
func lint(d store.Document, others []store.Document, artifacts map[string][]program.Artifact) []finding {
	if !argo.IsArgo(d.Data) && kfp.IsIR(d.Data) {
		p, err := kfp.Load(kfp.Source(d))
		if err == nil {
			_, err = p.Compile(kfp.Options{Lint: true, Artifacts: artifacts})
		}
		return findings(d.Name, err)
	}
	main, rest := submission.ArgoSources(append([]store.Document{d}, others...))
	b, err := argo.Load(main, rest)
	if err != nil {
		return findings(d.Name, err)
	}
	return findings(d.Name, b.Lint(argo.Options{Artifacts: artifacts}))
}

// findings turns a front end's errors into findings.
func findings(file string, err error) []finding {
	if err == nil {
		return nil
	}
	var out []finding
	var argoProblems argo.Problems
	var kfpProblems *kfp.InvalidError
	switch {
	case errors.As(err, &argoProblems):
		for _, p := range argoProblems.Sorted() {
			out = append(out, finding{File: p.File, Line: p.Line, Column: p.Column, Path: p.Path, Message: p.Message, Warning: p.Warning})
		}
	case errors.As(err, &kfpProblems):
		for _, p := range kfpProblems.Problems {
			message := p.What
			if p.Do != "" {
				message += "; " + p.Do
			}
			out = append(out, finding{File: p.File, Line: p.Line, Column: p.Column, Path: p.Path, Message: message})
		}
	default:
		out = append(out, finding{File: file, Message: err.Error()})
	}
	return out
}

func (a *app) printFindings(out string, all []finding, pods []judged, files, bad int) error {
	if out != "" {
		if all == nil {
			all = []finding{}
		}
		if err := a.printObject(out, struct {
			Files    int       `json:"files"`
			Bad      int       `json:"bad"`
			Findings []finding `json:"findings"`
			Capacity []judged  `json:"capacity,omitempty"`
		}{files, bad, all, pods}); err != nil {
			return err
		}
	} else {
		for _, f := range all {
			fmt.Fprintln(a.Stdout, f)
		}
	}
	if bad > 0 {
		return usage("%d of %d %s must be mended", bad, files, plural(files, "file"))
	}
	if out == "" {
		warnings := ""
		if len(all) > 0 {
			warnings = fmt.Sprintf(", %d %s", len(all), plural(len(all), "warning"))
		}
		fmt.Fprintf(a.Stdout, "%d %s, no mistakes%s\n", files, plural(files, "file"), warnings)
	}
	return nil
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
