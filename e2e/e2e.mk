# The end-to-end suite and the demonstration. Included by the top Makefile.
# A theme or THEME/SCENARIO, as a regular expression.
RUN ?= .

.PHONY: e2e
e2e: cluster install ## the end-to-end suite; RUN=undo/half for some of it
	go test -tags e2e -count=1 -timeout 30m -parallel 8 ./e2e -run '/$(RUN)'

.PHONY: demo
demo: cluster install ## what Stayput does, in a minute
	@PATH="$(BIN):$$PATH" e2e/demo.sh
