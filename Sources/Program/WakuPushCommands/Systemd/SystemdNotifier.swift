import Foundation
import Logging
import PushNode
import ServiceLifecycle
import Synchronization

/// Notifies systemd of readiness, status, liveness (the watchdog) and stopping.
final class SystemdNotifier: Service {
    private static let statusPeriod = Duration.seconds(1)
    /// Shorter until the node is ready, because other units may wait for that.
    private static let startPeriod = Duration.milliseconds(20)

    private let manager: ServiceManager
    private let node: NodeService
    private let logger: Logger
    /// Whether a liveness check has been started and has not finished.
    private let isChecking = Mutex(false)

    init(manager: ServiceManager, node: NodeService, logger: Logger) {
        self.manager = manager
        self.node = node
        self.logger = logger
    }

    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.notifyState() }
            group.addTask { await self.notifyWatchdog() }
            try? await gracefulShutdown()
            group.cancelAll()
        }
        manager.socket.send(ServiceNotices.stopping)
    }

    private func notifyState() async {
        var notices = ServiceNotices()
        while !Task.isCancelled {
            let isListening = node.httpPort != nil
            var next = notices
            if let notice = next.next(isListening: isListening, obstacles: node.obstacles), manager.socket.send(notice) { notices = next }
            try? await Task.sleep(for: isListening ? Self.statusPeriod : Self.startPeriod)
        }
    }

    /// The watchdog is notified only after a liveness check succeeded, so systemd restarts a node that hangs.
    private func notifyWatchdog() async {
        guard let watchdog = manager.watchdog else { return }
        while (try? await Task.sleep(for: watchdog / 2)) != nil {
            let isIdle = isChecking.withLock { isChecking in
                defer { isChecking = true }
                return !isChecking
            }
            guard isIdle else {
                logger.error("liveness check failed: store or delivery does not answer")
                continue
            }
            // Not awaited: the service must be able to stop while the check hangs.
            Task {
                await self.node.checkLiveness()
                self.manager.socket.send(ServiceNotices.alive)
                self.isChecking.withLock { $0 = false }
            }
        }
    }
}
