package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

//go:generate go test . -run TestReference -update

// Reference writes docs/cli.md: every command with its flags, from the commands themselves.
func Reference(w io.Writer) error {
	a := &app{Process: Process{Version: "dev", Stdout: io.Discard, Stderr: io.Discard, Env: func(string) string { return "" }}}
	root := a.root()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	var b strings.Builder
	fmt.Fprintf(&b, referenceHead, usages(root.PersistentFlags()))
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID == group.ID && c.Name() != "help" {
				describe(&b, c)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const referenceHead = `# The command line

This file is written by ` + "`make generate`" + ` from the commands themselves.

` + "`sluice`" + ` runs Argo Workflow manifests and compiled Kubeflow pipelines (IR) on this machine. A run is named by its name (the
newest run that has it), by its UID or the beginning of one, or by ` + "`@latest`" + `.

| exit code | meaning |
|---|---|
| 0 | the run succeeded, or the command did what was asked |
| 1 | the run failed or was interrupted, or the command could not do what was asked |
| 2 | bad input: an invalid manifest, an unknown flag, a run that is not there; nothing was started |

| variable | meaning |
|---|---|
| ` + "`SLUICE_HOME`" + ` | the folder that holds everything local: ` + "`sluice.db`, `runs/`, `artifacts/`, `envs/`, `hooks/`" + ` (default ` + "`$XDG_DATA_HOME/sluice`" + `, else ` + "`~/.local/share/sluice`" + `) |
| ` + "`SLUICE_LOG_LEVEL`" + ` | what to log to standard error: debug, info, warn or error |
| ` + "`SLUICE_EXECUTOR`" + ` | the program that wraps the commands of tasks (default: ` + "`sluice-executor`" + ` beside ` + "`sluice`" + `, else in PATH) |
| ` + "`NO_COLOR`" + ` | no colours |

What a run prints: progress and logs go to standard error, the result to standard output, so that ` + "`-o json`" + ` and
` + "`-o yaml`" + ` give nothing but the run in the form of its own tools. On a terminal progress is a live tree, else a line for each
change; a task that waits for something (a hook, a lock) gets a line once it has waited for two seconds.

Secrets that are given with ` + "`-f`" + ` are kept in the database, which only its owner can read, so that a run can be resumed; their values
are not printed and not sent to hooks.

These flags go with every command:

` + "```" + `
%s` + "```" + `
`

func describe(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n### %s\n\n", c.CommandPath())
	text := c.Long
	if text == "" || c.Name() == "completion" {
		text = c.Short + "."
	}
	b.WriteString(strings.TrimSpace(text) + "\n")
	if c.Runnable() {
		fmt.Fprintf(b, "\n```\n%s\n", c.UseLine())
		if c.Example != "" {
			b.WriteString("\n" + c.Example + "\n")
		}
		if flags := c.NonInheritedFlags(); flags.HasAvailableFlags() {
			b.WriteString("\n" + usages(flags))
		}
		b.WriteString("```\n")
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso called %s.\n", strings.Join(c.Aliases, ", "))
	}
	if c.Name() == "completion" {
		b.WriteString("\n`sluice completion bash|zsh|fish|powershell` prints the script; `--help` of each says where to put it.\n")
		return
	}
	for _, sub := range c.Commands() {
		describe(b, sub)
	}
}

// usages is what --help prints of flags, without the flag help itself.
func usages(flags *pflag.FlagSet) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(flags.FlagUsages(), "\n"), "\n") {
		if !strings.Contains(line, "  -h, --help ") && !strings.Contains(line, "--help   help for") {
			lines = append(lines, strings.TrimRight(line, " "))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
