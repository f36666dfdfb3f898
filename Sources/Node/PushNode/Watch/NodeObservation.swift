/// The parts that observe a node: gauges, alarms and charts, and the figures of the status page.
struct NodeObservation {
    let gauges: NodeGauges
    let watch: NodeWatch
    let pageSource: PageSource

    init(_ base: NodeFoundation, _ path: MessagePath) {
        gauges = NodeGauges(base, path)
        watch = NodeWatch(base, path)
        pageSource = PageSource(base: base, path: path, watch: watch)
    }
}
