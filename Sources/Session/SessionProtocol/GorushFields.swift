package import Core

/// The members of gorush's JSON for one device, in order, except `tokens` and `notif_id`.
package struct GorushFields: Hashable, Sendable {
    package enum Value: Hashable, Sendable {
        case text(String)
        case number(Int)
        case flag(Bool)
        case object([Member])
    }

    package struct Member: Hashable, Sendable {
        package let name: String
        package let value: Value

        package init(_ name: String, _ value: Value) {
            self.name = name
            self.value = value
        }
    }

    /// gorush's `platform`: 1 APNs, 2 Firebase, 3 Huawei.
    package let platform: Int
    package let members: [Member]

    /// - Parameters:
    ///   - payload: `enc_payload`.
    ///   - carriesData: Whether the payload contains message data.
    ///   - apnsTopic: `--session-apns-topic`; used only for APNs.
    package init(service: PushService, payload: String, carriesData: Bool, namespace: Int16, apnsTopic: String) {
        let isUrgent = Self.isUrgent(carriesData: carriesData, namespace: namespace)
        let priority = Member("priority", .text(isUrgent ? "high" : "normal"))
        switch service {
        case .apns, .apnsSandbox:
            platform = 1
            members =
                [
                    Member("topic", .text(apnsTopic)), Member("title", .text("Session")),
                    Member("message", .text("You've got a new message")), Member("badge", .number(1)), Member("sound", .text("default")),
                    Member("mutable_content", .flag(true)), Member("category", .text("SECRET")), Member("push_type", .text("alert")),
                    Member("priority", .text("high")),
                ]
                + (service == .apnsSandbox ? [Member("development", .flag(true))] : [])
                + [Member("data", .object([Member("enc_payload", .text(payload)), Member("spns", .number(1))]))]
        case .firebase:
            platform = 2
            members = [Member("data", .object([Member("enc_payload", .text(payload)), Member("spns", .text("1"))])), priority]
        case .webPush:
            // Not for gorush.
            platform = 0
            members = []
        case .huawei:
            platform = 3
            members = [Member("huawei_data", .text("{\"enc_payload\":\(jsonText(payload)),\"spns\":\"1\"}")), priority]
        }
    }

    /// Whether a notification is of high priority for Firebase, Huawei and Web Push.
    package static func isUrgent(carriesData: Bool, namespace: Int16) -> Bool {
        carriesData && (namespace == 0 || namespace == 11)
    }
}
