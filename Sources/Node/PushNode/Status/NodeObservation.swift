import Core
import NodeAPI
import Waku

/// The parts that observe a node: gauges, alarms and charts, and the figures of the status page.
struct NodeObservation {
    let gauges: NodeGauges
    let watch: NodeWatch
    let statusSource: StatusSource

    init(_ base: NodeFoundation, _ path: MessagePath) {
        gauges = NodeGauges(
            counters: base.counters, relay: path.relay, store: base.store, delivery: path.delivery, publisher: path.publisher,
            services: zip(base.protocols, path.services).map { ($0.label, $1) }, cluster: base.cluster, alarms: base.alarms,
            clock: base.clock, maximumRequestAge: base.configuration.maximumRequestAge, version: base.configuration.version, now: base.now)
        watch = NodeWatch(
            alarms: base.alarms, relay: path.relay, clock: base.cluster.isShared ? nil : base.clock, store: base.store,
            counters: base.counters, delivery: path.delivery, silenceAlarm: base.configuration.silenceAlarm, logger: base.logger,
            now: base.now)
        statusSource = StatusSource(
            counters: base.counters, gauges: gauges, watch: watch, relay: base.configuration.hasRelay ? path.relay : nil,
            store: base.store, delivery: path.delivery, protocols: base.protocols, services: path.services, cluster: base.cluster,
            now: base.now, started: .now, replyDelay: base.configuration.replyDelay, errors: base.configuration.recentErrors,
            documentation: base.configuration.documentation)
    }
}
