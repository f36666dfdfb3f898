import PushNode
import ServiceLifecycle
import SessionServer
import StoreSQLite
import TestSupport

/// A node as an operator sees it: a process that is started, killed, stopped, suspended and started again.
///
/// Everything runs on one thread, so its state needs no lock.
final class NodeProcess: @unchecked Sendable {
    let number: Int
    let folder: String
    /// The scheduler's number of the current run, or of the last one.
    var life = 0
    var startCount = 0
    /// nil while it does not run.
    var relay: SimulatedRelay?
    var service: NodeService?
    var services: ServiceGroup?
    /// Its own database; nil when it uses a server.
    var store: SQLiteStore?
    var disk: StoreFaults?
    /// Answers the bodies of Session's clients.
    var sessionAnswer: AnswerSession?
    /// To storage servers.
    var connections: SimulatedConnections?
    var isStopping = false
    /// When it was last told to stop.
    var stopTime = Int64.min
    var isSuspended = false
    /// When it was last suspended or resumed.
    var suspensionChanged = Int64.min
    /// The step at which it crashes next.
    var crashStep: Int?

    init(number: Int, in folder: String) {
        self.number = number
        self.folder = "\(folder)/node-\(number)"
    }

    var name: String { "node \(number)" }
    var isRunning: Bool { relay != nil }

    /// Of the current run, or the last one.
    var lifeFolder: String { "\(folder)/\(startCount)" }

    func wasSuspended(since time: Int64) -> Bool { isSuspended || suspensionChanged >= time }

    func forget() {
        (relay, services, service, store, disk) = (nil, nil, nil, nil, nil)
        (sessionAnswer, connections) = (nil, nil)
        (isSuspended, crashStep) = (false, nil)
    }
}
