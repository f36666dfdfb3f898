import Hummingbird
import NIOCore
import Foundation

/// The context of a request on the admin socket.
struct AdminContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    private let channel: any Channel

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    /// The numeric id of the user whose process connected, by the kernel; nil if the kernel doesn't tell.
    var user: UInt32? {
        get async {
            guard let socket = channel as? any SocketOptionProvider else { return nil }
            // The layout of `struct ucred`: pid, uid, gid.
            let credentials: EventLoopFuture<(Int32, UInt32, UInt32)> = socket.unsafeGetSocketOption(
                level: .socket, name: NIOBSDSocket.Option(rawValue: SO_PEERCRED))
            return try? await credentials.get().1
        }
    }
}
