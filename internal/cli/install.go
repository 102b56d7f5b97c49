package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sluice-ml/sluice/deploy"
)

func (a *app) installCommand() *cobra.Command {
	var o deploy.Options
	c := &cobra.Command{
		Use:   "install",
		Short: "Print what is to be installed on a Kubernetes cluster",
		Long: `Print the manifests of Sluice's controller: custom resources, rights, and the controller itself. No cluster is contacted:

    sluice install | kubectl apply --server-side -f -

By default the controller works for all namespaces. docs/kubernetes.md walks through it, docs/rbac.md says why it has which right.`,
		Example: `  sluice install --crds-only | kubectl apply --server-side -f -
  sluice install --namespaced --namespace ml | kubectl apply --server-side -f -`,
		Args:              exactly(0, "no argument"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if faults := validation.IsDNS1123Label(o.Namespace); o.Namespace != "" && len(faults) > 0 {
				return usage("--namespace %q: %s", o.Namespace, faults[0])
			}
			if o.InstanceID != "" {
				if faults := validation.IsDNS1123Label(deploy.Lease(o.InstanceID)); len(faults) > 0 {
					return usage("--instance-id %q: %s", o.InstanceID, faults[0])
				}
			}
			if o.CRDsOnly && o.NoCRDs {
				return usage("--crds-only and --no-crds together leave nothing")
			}
			if o.Image == "" {
				o.Image = "sluice:" + a.Version
			}
			if o.ExecutorImage == "" {
				o.ExecutorImage = "sluice-executor:" + a.Version
			}
			text, err := deploy.Manifests(o)
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write(text)
			return err
		},
	}
	f := c.Flags()
	f.BoolVar(&o.Namespaced, "namespaced", false, "the controller works for its own namespace only")
	f.StringVar(&o.Namespace, "namespace", "", "where the controller runs (default "+deploy.Namespace+", with --instance-id "+deploy.Namespace+"-ID); with --namespaced it must be there already")
	f.StringVar(&o.InstanceID, "instance-id", "", "one of several controllers of a cluster, each in a namespace of its own: for objects whose label workflows.argoproj.io/controller-instanceid has this value")
	f.StringVar(&o.Image, "image", "", "image of the controller (default sluice:VERSION)")
	f.StringVar(&o.ExecutorImage, "executor-image", "", "image that the program around each task's command is copied from (default sluice-executor:VERSION)")
	f.BoolVar(&o.Impersonation, "resource-templates", false, "let resource templates act with the rights of the workflows' service accounts")
	f.BoolVar(&o.CRDsOnly, "crds-only", false, "print the custom resource definitions only")
	f.BoolVar(&o.NoCRDs, "no-crds", false, "leave the custom resource definitions out")
	for _, name := range []string{"namespace", "instance-id", "image", "executor-image"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}
