package import Core
import Delivery
import Logging
package import NodeAPI
package import NodeMetrics
package import Storage
import Synchronization

/// The parts of a node that a protocol uses, on a store of the test, without a relay, an intake and endpoints: the test passes messages to the
/// protocol's handler, and reads the replies.
package struct BareNode: Sendable {
    private final class Made: Sendable {
        let handler = Mutex<(any WakuHandler)?>(nil)
    }

    /// In place of the node's intake and publisher.
    private final class Ends: ReceiverMaking, ReplyPublishing {
        /// Held by the node alone: the handler holds these ends, so they must not hold it.
        private unowned let made: Made
        let (replies, published) = AsyncStream.makeStream(of: Reply.self)

        init(_ made: Made) {
            self.made = made
        }

        func receiver(_ handler: some WakuHandler, _ node: NodeServices) -> any WakuReceiver {
            made.handler.withLock { $0 = handler }
            return NoReceiver()
        }

        func publish(_ reply: Reply) { published.yield(reply) }
    }

    package let services: NodeServices
    private let made: Made
    private let ends: Ends

    /// - Parameter hasTopics: whether the protocol has Waku topics.
    package init(
        _ store: any Store, of label: ProtocolLabel, metrics: [MetricGroup], hasTopics: Bool = true,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now
    ) {
        made = Made()
        ends = Ends(made)
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let counters = Counters(
            [.messages, .answers, .delivery, .webPush, .feedback, .devices, .relay, .node, .cluster, .process] + metrics,
            protocols: [label],
            withoutWaku: hasTopics ? [] : [label])
        services = NodeServices(
            store: store,
            delivery: DeliveryService(
                DeliveryService.Configuration(), store: store, sources: DeliverySources([]), gorush: [.none], counters: counters,
                alarms: Alarms(registry: counters.registry, now: now), logger: logger, now: now),
            replies: ends, handled: HandledMessages(), drain: Drain(), cluster: SoleMembership(), receivers: ends, counters: counters,
            logger: logger, errors: RepeatedErrors(logger), now: now, workLimit: 1000, answerLimit: .seconds(60))
    }

    /// The handler of the messages of the service that was made.
    package func handler<Handler: WakuHandler>(_ type: Handler.Type = Handler.self) -> Handler? {
        made.handler.withLock { $0 as? Handler }
    }

    /// The next reply that is published.
    package func nextReply() async -> Reply? {
        await ends.replies.first { _ in true }
    }
}
