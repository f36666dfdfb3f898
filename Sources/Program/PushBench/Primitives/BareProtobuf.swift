import CPushMessages
import Core
import StatusProtocol
import WakuCrypto

/// protobuf-c's calls on a registration of about 570 bytes. For one thread.
final class BareProtobuf {
    private let encoded: [UInt8]
    private let descriptor: UnsafePointer<ProtobufCMessageDescriptor>?
    private let message: UnsafeMutablePointer<ProtobufCMessage>
    private let output = UnsafeMutablePointer<UInt8>.allocate(capacity: 4096)

    init() {
        var registration = BenchClient.device(token: DeviceToken(hexString(randomBytes(32))), accessToken: BenchClient.accessToken())
        registration.grant = randomBytes(65)
        registration.version = 1
        registration.blockedChatList = (0..<5).map { _ in randomBytes(64) }
        encoded = registration.encoded()
        var empty = Protobuf__PushNotificationRegistration()
        protobuf__push_notification_registration__init(&empty)
        descriptor = empty.base.descriptor
        guard let message = protobuf_c_message_unpack(descriptor, nil, encoded.count, encoded) else {
            preconditionFailure("protobuf-c does not read what it wrote")
        }
        self.message = message
    }

    deinit {
        protobuf_c_message_free_unpacked(message, nil)
        output.deallocate()
    }

    func decode() {
        protobuf_c_message_free_unpacked(protobuf_c_message_unpack(descriptor, nil, encoded.count, encoded), nil)
    }

    func encode() {
        precondition(protobuf_c_message_get_packed_size(message) <= 4096)
        _ = protobuf_c_message_pack(message, output)
    }
}
