import COpenSSL
import Foundation

/// A thread's buffer of random bytes. A call of libcrypto's generator costs as much for 12 bytes as for 500, and more than encrypting a
/// row with them.
///
/// The buffer must not be used after a fork; no process of this project continues after one.
enum RandomReserve {
    private static let size = 512

    private static let slot = {
        var slot = pthread_key_t()
        precondition(
            pthread_key_create(&slot, { $0.map { Unmanaged<Buffer>.fromOpaque($0).release() } }) == 0,
            "the system has no room for another thread-specific value")
        return slot
    }()

    private final class Buffer {
        var bytes = [UInt8](repeating: 0, count: RandomReserve.size)
        /// The number of bytes used, from the front.
        var taken = RandomReserve.size
    }

    static func take(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { output, initialized in
            initialized = count
            guard count <= size / 4 else { return require(RAND_bytes(output.baseAddress, Int32(count))) }
            let buffer = buffer()
            if size - buffer.taken < count {
                require(RAND_bytes(&buffer.bytes, Int32(size)))
                buffer.taken = 0
            }
            for index in 0..<count {
                output.initializeElement(at: index, to: buffer.bytes[buffer.taken + index])
                // Erase the byte, so that it is never used twice or read later.
                buffer.bytes[buffer.taken + index] = 0
            }
            buffer.taken += count
        }
    }

    private static func buffer() -> Buffer {
        if let known = pthread_getspecific(slot) { return Unmanaged<Buffer>.fromOpaque(known).takeUnretainedValue() }
        let made = Unmanaged.passRetained(Buffer())
        pthread_setspecific(slot, made.toOpaque())
        return made.takeUnretainedValue()
    }
}
