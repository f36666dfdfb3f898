import PushNode
import Delivery
import Core
import StatusProtocol
import StatusServer
import WakuCrypto

extension AdminAPI.TestPush {
    /// Posts the test notification, or encodes it for a preview.
    ///
    /// - Parameters:
    ///   - format: the format of an endpoint, by its index in `rules`.
    ///   - post: posts to the endpoint with this index.
    func carryOut(
        rules: [EndpointRule], format: (Int) -> NotificationFormat, post: (Int, Notification) async throws -> PostResult
    ) async rethrows -> AdminAPI.TestedPush {
        var tested = AdminAPI.TestedPush()
        guard !rules.isEmpty, let place = EndpointRouting(rules).endpoint(for: platform, apnTopic: apnTopic) else {
            tested.problem = "no gorush is configured for this app"
            return tested
        }
        guard let notification = notification(sandbox: rules[place].sandboxTopics) else {
            tested.problem = "the test notification can't be read"
            return tested
        }
        if isPreview {
            tested.preview = String(decoding: format(place).encode([notification], at: .now()), as: UTF8.self)
        } else {
            tested.set(try await post(place, notification))
        }
        return tested
    }

    /// nil when the kind or the key hash is not valid.
    private func notification(sandbox: Set<String>) -> Notification? {
        guard let kind = ContentKind(rawValue: kind), let registrant = WakuCrypto.bytes(hex: keyHash).flatMap({ KeyHash(bytes: $0) }) else {
            return nil
        }
        return Notification(
            id: "test-" + hexString(randomBytes(12)), platform: platform, deviceToken: DeviceToken(deviceToken), apnTopic: apnTopic,
            isForSandbox: platform == .apn && sandbox.contains(apnTopic), expires: .now() + .seconds(lifetime),
            content: StatusContent(
                kind: NotificationKind(kind), chatID: Shake256.hash64(randomBytes(32)), registrant: registrant, message: [],
                installationID: InstallationID(installation)))
    }
}

extension AdminAPI.TestedPush: FieldsReport {
    fileprivate mutating func set(_ result: PostResult) {
        outcome =
            switch result.outcome {
            case .accepted: "accepted"
            case .refused: "refused"
            case .failed, .unclear, .notPosted, .unpostable: "failed"
            }
        reason = result.reason
        counted = result.countedTokenCount
        tokenFailure = result.failures.first.map { $0.reason.rawValue }
        tokenVerdict = result.failures.first.map { $0.verdict.rawValue }
    }

    var isGood: Bool { outcome == "accepted" && tokenFailure == nil && counted != 0 }

    var fields: [(String, String)] {
        var fields = [("gorush", outcome ?? "failed")]
        if let reason { fields.append(("reason", Output.printable(reason))) }
        if counted == 0 { fields.append(("counted", "none: is the platform switched off in gorush?")) }
        if let tokenFailure { fields.append(("token", tokenFailure + (tokenVerdict.map { ", verdict \($0)" } ?? ""))) }
        if isGood { fields.append(("token", "no failure reported")) }
        return fields
    }
}
