public import Core
import Foundation
public import NodeAPI
import NodeAssembly
import NodeMetrics
import PushNode
import StorePostgreSQL
public import Waku
public import WakuCrypto

/// The behaviour that operators and clients rely on in any protocol whose devices register and are notified. Each check runs nodes with the protocol
/// in this process, on SQLite, or on a PostgreSQL database that the caller provides.
///
/// With swift-testing:
///
///     @Test(arguments: ProtocolContract.Check.allCases.filter { !$0.needsPostgreSQL })
///     func contract(check: ProtocolContract.Check) async throws { try await contract.run(check) }
public struct ProtocolContract: Sendable {
    /// A part of the contract.
    public enum Check: String, CaseIterable, Sendable {
        /// A message that arrives twice, and again after a restart, notifies once.
        case repetition
        /// A node that is killed after it posted a notification and before it recorded that repeats that notification alone, under the same id.
        case kill
        /// A registration is replaced and ended by higher versions only, also after a restart.
        case versions
        /// A device whose token is dead is not notified again until it registers with a higher version.
        case deadToken
        /// A device is not notified after the end of its registration.
        case expiry
        /// Registrations of an owner above its limit (`registrations-by-sender`) are dropped; those of others are not.
        case senderLimit
        /// Notifications of a device above its limit (`notifications-by-target`) are dropped; those of others are not.
        case targetLimit
        /// Throw-away keys that fill the room for devices (`registration-count`) displace each other: a new device still gets a place, and devices that were
        /// notified keep theirs.
        case throwAwayKeys
        /// Devices and handled messages move to PostgreSQL.
        case migration
        /// Two nodes that receive the same messages notify once.
        case twoNodes

        /// Whether ``ProtocolContract/run(_:postgreSQL:)`` needs a database.
        public var needsPostgreSQL: Bool { self == .migration || self == .twoNodes }
    }

    /// A registration that the protocol encodes.
    public struct Registration: Sendable {
        /// The key that identifies the device.
        public let owner: PrivateKey
        /// Increases with each registration of an owner.
        public let version: UInt64
        /// A Firebase token; nil ends the device.
        public let token: String?
        /// The end of the registration.
        public let end: Timestamp
        /// The node's key.
        public let node: PublicKey
    }

    private let description: ProtocolDescription
    private let register: @Sendable (Registration, Timestamp) throws -> WakuMessage
    private let notify: @Sendable (_ number: Int, Timestamp) throws -> WakuMessage

    /// - Parameters:
    ///   - register: makes the message of a registration, with this timestamp. All devices register for the same notifications.
    ///   - notify: makes a message that notifies all registered devices, with this timestamp. Other numbers make other messages.
    public init(
        _ description: ProtocolDescription, register: @escaping @Sendable (Registration, _ at: Timestamp) throws -> WakuMessage,
        notify: @escaping @Sendable (_ number: Int, _ at: Timestamp) throws -> WakuMessage
    ) {
        (self.description, self.register, self.notify) = (description, register, notify)
    }

    /// Runs a check.
    ///
    /// - Parameter postgreSQL: the connection string of an empty database.
    /// - Throws: ``ContractViolation``, and errors of the store.
    public func run(_ check: Check, postgreSQL: String? = nil) async throws {
        let stage = try ContractStage(description)
        defer { stage.remove() }
        switch check {
        case .repetition: try await repetition(stage)
        case .kill: try await kill(stage)
        case .versions: try await versions(stage)
        case .deadToken: try await deadToken(stage)
        case .expiry: try await expiry(stage)
        case .senderLimit: try await senderLimit(stage)
        case .targetLimit: try await targetLimit(stage)
        case .throwAwayKeys: try await throwAwayKeys(stage)
        case .migration: try await migration(stage, try PostgreSQLAddress(required(postgreSQL)))
        case .twoNodes: try await twoNodes(stage, try PostgreSQLAddress(required(postgreSQL)))
        }
    }

    private func required(_ postgreSQL: String?) throws -> String {
        guard let postgreSQL else { throw ContractViolation("this check needs a PostgreSQL database") }
        return postgreSQL
    }

    // MARK: Messages

    private func registration(
        _ stage: ContractStage, _ token: String?, by owner: PrivateKey, version: UInt64 = 1, lifetime: Duration = .seconds(86_400),
        ahead: Duration = .zero
    ) throws -> WakuMessage {
        let now = Timestamp.now() + ahead
        return try register(
            Registration(owner: owner, version: version, token: token, end: now + lifetime, node: stage.identity.publicKey), now)
    }

    private func message(_ number: Int, ahead: Duration = .zero) throws -> WakuMessage { try notify(number, .now() + ahead) }

    /// Registers a further device and notifies all. Returns when that device was notified, and no notification waits: earlier messages are handled by then.
    private func settle(_ stage: ContractStage, _ nodes: [ContractNode], number: Int, ahead: Duration = .zero) async throws {
        let token = "settled-\(number)"
        try await nodes.feed(try registration(stage, token, by: .generate(), ahead: ahead))
        try await nodes.feed(try message(1000 + number, ahead: ahead))
        try await stage.wait("a new device is notified, and no notification waits") {
            stage.gorush.count(of: token) == 1 && nodes.allSatisfy { $0.service.waitingCount == 0 }
        }
    }

    // MARK: Checks

    private func repetition(_ stage: ContractStage) async throws {
        let first = try message(1)
        try await stage.run { nodes in
            try await nodes.feed(try registration(stage, "device", by: stage.owner))
            for _ in 1...2 { try await nodes.feed(first) }
            try await settle(stage, nodes, number: 1)
        }
        try stage.expect(2, "device", "a message that arrived twice and another")
        try await stage.run { nodes in
            try await nodes.feed(first)
            try await settle(stage, nodes, number: 2)
        }
        try stage.expect(3, "device", "a message that arrived again after a restart, and another")
    }

    private func kill(_ stage: ContractStage) async throws {
        let copy = stage.folder + "/killed"
        let first = try message(1)
        try await stage.run { nodes in
            try await nodes.feed(try registration(stage, "device", by: stage.owner))
            // A node that is killed now leaves the folder in this state.
            stage.gorush.whenPosted { try? FileManager.default.copyItem(atPath: stage.folder + "/data", toPath: copy) }
            try await nodes.feed(first)
            try await stage.wait("the device is notified") { stage.gorush.count(of: "device") == 1 }
        }
        try await stage.run(in: "killed") { nodes in
            try await stage.wait("the notification is posted again") { stage.gorush.posted(to: "device").count == 2 }
            try await nodes.feed(first)
            try await settle(stage, nodes, number: 1)
        }
        try stage.expect(2, "device", "a message during which the node was killed, and another")
    }

    private func versions(_ stage: ContractStage) async throws {
        let registrations = [
            try registration(stage, "first", by: stage.owner), try registration(stage, "second", by: stage.owner, version: 2),
            try registration(stage, nil, by: stage.owner, version: 3),
        ]
        try await stage.run { nodes in
            for index in [0, 1] { try await nodes.feed(registrations[index]) }
            try await nodes.feed(try registration(stage, "outdated", by: stage.owner))
            try await settle(stage, nodes, number: 1)
        }
        try stage.expect(0, "first", "a registration that was replaced")
        try stage.expect(0, "outdated", "a registration with the version of an earlier one")
        try stage.expect(1, "second", "a registration with a higher version")
        try await stage.run { nodes in
            for index in [2, 0, 1] { try await nodes.feed(registrations[index]) }
            try await nodes.feed(try registration(stage, "outdated", by: stage.owner, version: 2))
            try await settle(stage, nodes, number: 2)
        }
        try stage.expect(0, "outdated", "a registration with a version below that of the end")
        try stage.expect(1, "second", "a device that was ended")
    }

    private func deadToken(_ stage: ContractStage) async throws {
        try await stage.run { nodes in
            try await nodes.feed(try registration(stage, "dead", by: stage.owner))
            try await nodes.feed(try message(1))
            try await stage.wait("the token is removed") { nodes[0].service.counters.count(.tokenRemoved) == 1 }
            try await settle(stage, nodes, number: 1)
            try await nodes.feed(try registration(stage, "replaced", by: stage.owner, version: 2))
            try await settle(stage, nodes, number: 2)
        }
        try stage.expect(1, "dead", "a device whose token is dead")
        try stage.expect(1, "replaced", "a device that registered again with a higher version")
    }

    private func expiry(_ stage: ContractStage) async throws {
        try await stage.run { nodes in
            try await nodes.feed(try registration(stage, "device", by: stage.owner, lifetime: .seconds(3600)))
            try await settle(stage, nodes, number: 1)
        }
        let ahead = Duration.seconds(7200)
        try await stage.run(ahead: ahead) { nodes in
            try await nodes.feed(try message(1, ahead: ahead))
            try await settle(stage, nodes, number: 2, ahead: ahead)
        }
        try stage.expect(1, "device", "a device whose registration ended between two messages")
    }

    private func senderLimit(_ stage: ContractStage) async throws {
        try await stage.run(limits: [.registrationsBySender: "1/h burst 2"]) { nodes in
            for version in 1...3 {
                let message = try registration(stage, "version \(version)", by: stage.owner, version: UInt64(version))
                try await nodes.feed(message)
                // Anyone can send it again, with another timestamp.
                for copy in 1...4 { try await nodes.feed(message.sent(at: message.timestamp + .milliseconds(copy))) }
            }
            try await settle(stage, nodes, number: 1)
        }
        try stage.expect(1, "version 2", "a registration within the owner's limit, which copies of its first one do not use up")
        try stage.expect(0, "version 3", "a registration above the owner's limit")
    }

    private func targetLimit(_ stage: ContractStage) async throws {
        try await stage.run(limits: [.notificationsByTarget: "1/h burst 2"]) { nodes in
            try await nodes.feed(try registration(stage, "device", by: stage.owner))
            for number in 1...3 { try await nodes.feed(try message(number)) }
            try await settle(stage, nodes, number: 1)
        }
        try stage.expect(2, "device", "four messages, of which the device's limit allows two")
    }

    private func throwAwayKeys(_ stage: ContractStage) async throws {
        try await stage.run(limits: [.registrationCount: "3"]) { nodes in
            try await nodes.feed(try registration(stage, "device", by: stage.owner))
            try await settle(stage, nodes, number: 1)
            try await stage.wait("both notifications are recorded") { nodes[0].service.counters.count(.notificationAccepted) == 2 }
            for number in 1...10 { try await nodes.feed(try registration(stage, "thrown away \(number)", by: .generate())) }
            try await settle(stage, nodes, number: 2)
        }
        try stage.expect(2, "device", "a device that was notified before others filled the room for devices")
        try stage.expect(2, "settled-1", "a device that was notified before others filled the room for devices")
    }

    private func migration(_ stage: ContractStage, _ address: PostgreSQLAddress) async throws {
        let first = try message(1)
        try await stage.run { nodes in
            try await nodes.feed(try registration(stage, "device", by: stage.owner))
            try await nodes.feed(first)
            try await settle(stage, nodes, number: 1)
        }
        try await stage.move(to: address)
        try await stage.run(at: .postgreSQL(address)) { nodes in
            try await nodes.feed(first)
            try await nodes.feed(try registration(stage, "outdated", by: stage.owner))
            try await settle(stage, nodes, number: 2)
        }
        try stage.expect(3, "device", "messages before and after the move to PostgreSQL, one of them repeated")
        try stage.expect(0, "outdated", "a registration with a stored version after the move")
    }

    private func twoNodes(_ stage: ContractStage, _ address: PostgreSQLAddress) async throws {
        // One node first: with two, a message may be handled before the registration that another node handles.
        try await stage.run(at: .postgreSQL(address), names: ["one"]) { nodes in
            try await nodes.feed(try registration(stage, "device", by: stage.owner))
            try await settle(stage, nodes, number: 1)
        }
        try await stage.run(at: .postgreSQL(address), names: ["one", "two"]) { nodes in
            try await stage.wait("the nodes share the work") {
                nodes.map { $0.service.cluster.share }.allSatisfy { $0 > 0 } && nodes.allSatisfy { $0.service.cluster.nodeCount == 2 }
            }
            for number in 1...20 { try await nodes.feed(try message(number)) }
            try await stage.wait("all messages notify") { stage.gorush.count(of: "device") == 21 }
        }
        try stage.expect(21, "device", "a message, and 20 that two nodes received")
    }
}

/// A protocol does not keep to its contract.
public struct ContractViolation: Error, CustomStringConvertible {
    /// The expectation and the result.
    public let description: String

    init(_ description: String) { self.description = description }
}

extension WakuMessage {
    fileprivate func sent(at time: Timestamp) -> WakuMessage {
        var copy = self
        copy.timestamp = time
        return copy
    }
}
