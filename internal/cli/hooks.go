package cli

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/hook"
	"github.com/sluice-ml/sluice/pkg/taskhook/hooktest"
)

func (a *app) hooksCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "hooks",
		Short: "List task hooks, and test a plugin",
		Long: `Task hooks are asked before and after every task: docs/hooks.md. They are TaskHook documents, given to sluice run with
--hooks, or kept in the folder hooks of $SLUICE_HOME.`,
	}
	c.AddCommand(a.hooksListCommand(), a.hooksTestCommand())
	return c
}

func (a *app) hooksListCommand() *cobra.Command {
	var out string
	var submit submitFlags
	c := &cobra.Command{
		Use:   "list",
		Short: "List the hooks that a run would have",
		Args:  exactly(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			docs, err := submit.readHooks(a)
			if err != nil {
				return err
			}
			reg, err := a.registry(docs)
			if err != nil {
				return err
			}
			return a.printHooks(out, reg.Hooks())
		},
	}
	outputFlag(c, &out, "json", "yaml", "name")
	c.Flags().StringArrayVar(&submit.hooks, "hooks", nil, "`file` or folder of TaskHook documents (default: the folder hooks in $SLUICE_HOME)")
	return c
}

func (a *app) printHooks(out string, hooks []hook.Hook) error {
	switch out {
	case "json", "yaml":
		docs := []v1alpha1.TaskHook{}
		for _, h := range hooks {
			docs = append(docs, h.TaskHook)
		}
		return a.printObject(out, docs)
	case "name":
		for _, h := range hooks {
			fmt.Fprintln(a.Stdout, h.Name())
		}
		return nil
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tPOINTS\tSCOPE\tON FAILURE\tPLUGIN\tFROM")
	for _, h := range hooks {
		points, scope, policy := "Pre,Post", "Task", "Fail"
		if len(h.Spec.Points) > 0 {
			points = joined(h.Spec.Points)
		}
		if len(h.Spec.Scope) > 0 {
			scope = joined(h.Spec.Scope)
		}
		if h.Spec.FailurePolicy != "" {
			policy = string(h.Spec.FailurePolicy)
		}
		plugin := ""
		switch {
		case h.Spec.HTTP != nil:
			plugin = h.Spec.HTTP.URL
		case h.Spec.Container != nil:
			plugin = "container " + h.Spec.Container.Image
		case h.Spec.Builtin != nil:
			plugin = "built-in " + h.Spec.Builtin.Name
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", h.Name(), points, scope, policy, plugin, h.Origin)
	}
	return w.Flush()
}

func joined[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = string(t)
	}
	return strings.Join(texts, ",")
}

func (a *app) hooksTestCommand() *cobra.Command {
	var out, name, secretFile string
	var points []string
	var batch bool
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "test URL",
		Short: "Send sample reviews to a plugin and explain its answers",
		Long: `Send sample reviews to a plugin's server, each point and then the same once more, and explain what the answers would make
sluice do. The exit code is 1 where an answer is against the protocol.`,
		Example: `  sluice hooks test http://localhost:8080/hook
  sluice hooks test https://lineage.example/hook --secret-file secret.txt --batch`,
		Args: exactly(1, "the plugin's URL"),
		RunE: func(c *cobra.Command, args []string) error {
			o := hooktest.Options{Hook: name, Batch: batch, Timeout: timeout}
			if !strings.HasPrefix(args[0], "http://") && !strings.HasPrefix(args[0], "https://") {
				return usage("%s: must begin with http:// or https://", args[0])
			}
			for _, p := range points {
				if p != string(v1alpha1.Pre) && p != string(v1alpha1.Post) {
					return usage("--points %s: must be Pre or Post", p)
				}
				o.Points = append(o.Points, v1alpha1.Point(p))
			}
			if secretFile != "" {
				doc, err := a.readFile(secretFile)
				if err != nil {
					return err
				}
				o.Secret = []byte(strings.TrimRight(string(doc.Data), "\r\n"))
			}
			found := hooktest.Run(c.Context(), args[0], o)
			if out != "" {
				if err := a.printObject(out, found); err != nil {
					return err
				}
			} else {
				a.printHookFindings(found)
			}
			if hooktest.Worst(found) == hooktest.Problem {
				return failure{errors.New("the plugin does not keep the protocol")}
			}
			return nil
		},
	}
	outputFlag(c, &out, "json", "yaml")
	f := c.Flags()
	f.StringVar(&name, "hook", "test", "name of the hook in the reviews")
	f.StringVar(&secretFile, "secret-file", "", "`file` with the secret that reviews are signed with")
	f.StringSliceVar(&points, "points", nil, "only these points: Pre, Post")
	f.BoolVar(&batch, "batch", false, "also send lists of reviews")
	f.DurationVar(&timeout, "timeout", 10*time.Second, "time for one call")
	return c
}

func (a *app) printHookFindings(found []hooktest.Finding) {
	c := a.stdoutColour()
	for _, f := range found {
		sign := c.paint(green, "✔")
		switch f.Level {
		case hooktest.Problem:
			sign = c.paint(red, "✖")
		case hooktest.Note:
			sign = c.paint(yellow, "!")
		}
		took := ""
		if f.Took > 0 {
			took = c.paint(grey, fmt.Sprintf(" (%s)", f.Took.Round(100*time.Microsecond)))
		}
		fmt.Fprintf(a.Stdout, "%s %s: %s%s\n", sign, f.Check, f.Text, took)
	}
}
