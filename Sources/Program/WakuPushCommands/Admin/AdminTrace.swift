import ArgumentParser
import Core
import Delivery
import NodeAssembly
import Storage
import WakuCrypto

extension Admin {
    struct Trace: AdminCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows the state of a notification: waiting, accepted, or unknown.",
            discussion: """
                The id is gorush's notif_id, as in its log; with the payload profile private it has dashes, and the node's key is needed. \
                Accepted notifications are known for 24 hours. The database is read, beside a running daemon or without one.

                EXAMPLE
                  waku-push admin trace 5d8fe7b3a0c94e12bb07f1c26a93d4e8 --data data
                """)

        @ParentCommand var command: Admin
        @OptionGroup var admin: AdminOptions
        @Argument(help: "The notif_id.") var id: String

        func execute() async throws {
            let prefix = try deliveryPrefix()
            let store = try await openStore()
            let rows = try rows(of: prefix, in: store)
            guard !rows.isEmpty else {
                throw CommandFailure(
                    .data,
                    "nothing is stored about this notification: it was accepted more than 24 hours ago, was dropped, or is not from this node"
                )
            }
            try Output.fields(rows, asJSON: admin.json)
        }

        private func deliveryPrefix() throws -> [UInt8] {
            if let prefix = DeliveryID.prefix(of: id, nil) { return prefix }
            let isPrivate = id.contains("-")
            let identity = isPrivate ? try admin.requiredIdentity("only the node's key reads ids of the payload profile private") : nil
            guard let prefix = identity.flatMap({ DeliveryID.prefix(of: id, NotificationIDCipher(identity: $0)) }) else {
                throw CommandFailure(.usage, "a notif_id has 32 hexadecimal digits, or is a UUID")
            }
            return prefix
        }

        private func rows(of prefix: [UInt8], in store: any Store) throws -> [TracedNotification] {
            let traces = try store.read(DeliveryStorage.traces(of: prefix))
            let devices = Set(traces.map(\.device))
            let owners = try NodeAssembly.owners(of: devices.map(\.self), in: store)
            let versions = try store.read(NodeAssembly.deliverySources(of: store).versions(of: devices))
            return try traces.map { trace in
                TracedNotification(
                    trace, owners[trace.device], version: versions[trace.device],
                    doubt: try store.read(DeliveryStorage.doubt(of: trace.device)))
            }
        }
    }
}

/// A notification as `admin trace` prints it. Absent members are unknown, or do not apply to the state.
private struct TracedNotification: FieldsReport {
    let state: String
    let `protocol`: String
    let keyHash: String?
    let installation: String?
    /// The version of the device's present registration; nil: the device is no longer registered.
    let registeredVersion: UInt64?
    var postedVersion: UInt64?
    var outboxID: Int64?
    var firstPost: String?
    var expires: String?
    var accepted: String?
    /// Whether a failure of the token was reported after the notification was accepted.
    var tokenFailed: Bool?
    /// Failures in a row of the present token, for reasons that may be the operator's own.
    let tokenFailures: Int

    init(_ trace: DeliveryTrace, _ owner: DeviceOwner?, version: UInt64?, doubt: TokenDoubt?) {
        `protocol` = NodeAssembly.protocolName(of: trace.device.protocol)
        keyHash = owner.map { hexString($0.keyHash) }
        installation = owner?.installation
        registeredVersion = version
        tokenFailures = doubt.map { $0.version == version ? $0.failureCount : 0 } ?? 0
        switch trace.state {
        case .waiting(let id, let expires, let markedAt):
            state = "waiting"
            (outboxID, firstPost) = (id, markedAt?.formatted)
            self.expires = expires.formatted
        case .accepted(let time, let version, let hasFailed):
            state = "accepted"
            (accepted, postedVersion, tokenFailed) = (time.formatted, version, hasFailed)
        }
    }

    var fields: [(String, String)] {
        var fields = [("state", state), ("protocol", `protocol`)]
        if let keyHash { fields.append(("key hash", keyHash)) }
        if let installation { fields.append(("installation", installation)) }
        fields.append(("registered", registeredVersion.map { "yes, version \($0)" } ?? "no longer"))
        if let outboxID { fields += [("outbox id", String(outboxID)), ("first post", firstPost ?? "none yet")] }
        if let expires { fields.append(("expires", expires)) }
        if let accepted { fields.append(("accepted", accepted)) }
        if let postedVersion { fields.append(("posted to", "the token of version \(postedVersion)")) }
        if let tokenFailed { fields.append(("reported later", tokenFailed ? "a failure of the token" : "no failure")) }
        if tokenFailures > 0 { fields.append(("token", "in doubt, \(tokenFailures) failures in a row")) }
        return fields
    }
}
