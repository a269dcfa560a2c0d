package argocd

import _ "github.com/argoproj/argo-cd/v3/util/lua"
import _ "github.com/argoproj/argo-cd/gitops-engine/pkg/health"
