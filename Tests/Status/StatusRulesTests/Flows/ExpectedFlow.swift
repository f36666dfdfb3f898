import Foundation
import Core
import StatusProtocol
import TestSupport
import WakuCrypto

/// The expected results of a flow's messages: the recorded results of the reference, changed by the flow's ``FlowDeviation``.
struct ExpectedFlow {
    enum Body: Hashable {
        case registration(PushNotificationRegistrationResponse)
        /// The rows may be in any order.
        case query(Set<PushNotificationQueryInfo>, messageID: [UInt8], rowCount: Int)
        case request(PushNotificationResponse)

        init(_ kind: UInt32?, _ payload: [UInt8]) throws {
            switch kind.flatMap(MessageKind.init) {
            case .registrationResponse: self = .registration(try PushNotificationRegistrationResponse(parsing: payload))
            case .queryResponse:
                let response = try PushNotificationQueryResponse(parsing: payload)
                self = .query(Set(response.info), messageID: response.messageID, rowCount: response.info.count)
            case .response: self = .request(try PushNotificationResponse(parsing: payload))
            default: throw Incomplete()
            }
        }
    }

    struct Answer {
        let recipient: [UInt8]
        let contentTopic: String?
        var body: Body
    }

    /// The recording lacks data that its deviation needs.
    struct Incomplete: Error {}

    private(set) var answers: [Answer]
    private(set) var notified: [PlainNode.Notified]

    init(_ flow: StatusGoVectors.Flow, deviation: FlowDeviation?, in replay: FlowReplay) throws {
        notified = try Self.notified(flow)
        if case .silence = deviation {
            answers = []
            return
        }
        answers = try (flow.wireOut ?? []).map { message in
            guard let envelope = message.applicationMetadata, let payload = envelope.payload,
                let to = message.encryption?.recipientPublicKey
            else { throw Incomplete() }
            return Answer(recipient: to.bytes, contentTopic: message.contentTopic, body: try Body(envelope.type, payload.bytes))
        }
        switch deviation {
        case nil, .silence: break
        case .registration(let error):
            guard case .registration(let recorded) = answers.first?.body else { throw Incomplete() }
            answers[0].body = .registration(PushNotificationRegistrationResponse(error: error, requestID: recorded.requestID))
        case .rows(let names):
            guard case .query(let recorded, let messageID, _) = answers.first?.body else { throw Incomplete() }
            let rows = recorded.map { row in
                var row = row
                row.serverPublicKey = replay.server.compressed
                return row
            }
            let more = try names.map { try Self.row(of: replay.flow($0), server: replay.server) }
            answers[0].body = .query(Set(rows + more), messageID: messageID, rowCount: rows.count + more.count)
        case .reports(let errors, let notified):
            try expect(reports: errors, for: flow)
            switch notified {
            case .asRecorded: break
            case .nothing: self.notified = []
            case .later(let name): self.notified = try Self.notified(replay.flow(name))
            }
        }
    }

    private mutating func expect(reports errors: [PushNotificationReport.ErrorType?], for flow: StatusGoVectors.Flow) throws {
        let message = flow.wireIn.first
        guard let request = message?.request, let entries = request.requests, entries.count == errors.count,
            let asker = message?.applicationMetadata?.signerPublicKey
        else { throw Incomplete() }
        let reports = zip(entries, errors).map { entry, error in
            PushNotificationReport(
                error: error, publicKey: entry.publicKey.bytes, installationID: InstallationID(entry.installationId))
        }
        let body = Body.request(PushNotificationResponse(messageID: request.messageId.bytes, reports: reports))
        let topic = StatusGoVectors.recorded.keys.first { $0.publicKey == asker }?.partitionedTopic.contentTopic
        answers = [Answer(recipient: asker.bytes, contentTopic: topic, body: body)]
    }

    /// The row of a flow's registration, from the recorded plaintext of the client.
    private static func row(of flow: StatusGoVectors.Flow, server: PublicKey) throws -> PushNotificationQueryInfo {
        guard let message = flow.wireIn.first, let plain = message.registration?.plaintext,
            let client = message.applicationMetadata?.signerPublicKey
        else { throw Incomplete() }
        let registration = try PushNotificationRegistration(parsing: plain.bytes)
        return PushNotificationQueryInfo(
            accessToken: registration.accessToken, installationID: registration.installationID,
            publicKey: KeyHash(of: try PublicKey(parsing: client.bytes)).bytes, allowedKeyList: [], grant: registration.grant,
            version: registration.version, serverPublicKey: server.compressed)
    }

    private struct PostBody: Decodable {
        struct Notification: Decodable {
            let tokens: [String]
            let platform: Int32
        }
        let notifications: [Notification]
    }

    private static func notified(_ flow: StatusGoVectors.Flow) throws -> [PlainNode.Notified] {
        try (flow.gorush ?? []).flatMap { post in
            try JSONDecoder().decode(PostBody.self, from: Data(post.body.utf8)).notifications.flatMap { notification in
                notification.tokens.map {
                    PlainNode.Notified(token: DeviceToken($0), platform: Platform(rawValue: notification.platform))
                }
            }
        }
    }
}
