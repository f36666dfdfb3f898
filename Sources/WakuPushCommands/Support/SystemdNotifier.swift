import Foundation
import Logging
import PushNode
import ServiceLifecycle
import Synchronization
import Systemd

/// Tells systemd when the node is ready, what is in its way, that it lives, and that it stops.
final class SystemdNotifier: Service {
    private static let statusPeriod = Duration.seconds(1)
    /// Until it is ready: others may wait for that.
    private static let startPeriod = Duration.milliseconds(20)

    private let manager: ServiceManager
    private let node: NodeService
    private let logger: Logger
    /// Whether the node was asked for a sign of life that has not come yet.
    private let isAsked = Mutex(false)

    init(manager: ServiceManager, node: NodeService, logger: Logger) {
        self.manager = manager
        self.node = node
        self.logger = logger
    }

    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.tellState() }
            group.addTask { await self.tellLife() }
            try? await gracefulShutdown()
            group.cancelAll()
        }
        manager.socket.send(ServiceNotices.stopping)
    }

    private func tellState() async {
        var notices = ServiceNotices()
        while !Task.isCancelled {
            let isListening = node.httpPort != nil
            var next = notices
            if let notice = next.next(isListening: isListening, obstacles: node.obstacles), manager.socket.send(notice) { notices = next }
            try? await Task.sleep(for: isListening ? Self.statusPeriod : Self.startPeriod)
        }
    }

    /// A sign goes out when the node showed life, never because time passed: a node that hangs is silent, and systemd ends it.
    private func tellLife() async {
        guard let watchdog = manager.watchdog else { return }
        while (try? await Task.sleep(for: watchdog / 2)) != nil {
            let isFirst = isAsked.withLock { isAsked in
                defer { isAsked = true }
                return !isAsked
            }
            guard isFirst else {
                logger.error("no sign of life from the store or the deliveries")
                continue
            }
            // Not waited for: the node must be able to stop when it hangs.
            Task {
                await self.node.checkLiveness()
                self.manager.socket.send(ServiceNotices.alive)
                self.isAsked.withLock { $0 = false }
            }
        }
    }
}
