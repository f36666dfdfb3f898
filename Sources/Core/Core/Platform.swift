/// The kind of push service of a device. The raw values are stored; those of APNs, Firebase and Huawei are also gorush's.
public enum Platform: Int32, Sendable, CaseIterable, Codable {
    case apn = 1
    case firebase = 2
    case huawei = 3
    /// A push service that takes Web Push messages from the node itself, without gorush.
    case webPush = 4

    /// The push services that gorush posts to.
    public static let ofGorush: [Platform] = [.apn, .firebase, .huawei]

    /// The name in options, logs and the output of admin commands.
    public var name: String {
        switch self {
        case .apn: "apn"
        case .firebase: "firebase"
        case .huawei: "huawei"
        case .webPush: "webpush"
        }
    }
}
